"""Steps of DiffPIR, with the code of yuanzhi-zhu/DiffPIR at 111d26e.

DiffPIR is a program without functions. Its main() for inpainting runs with one picture and one mask in place of its image files,
without its log and its folders, and its assignments of noise level, number of steps, lambda and zeta are replaced by those of the
case. The states are the inputs of its calls of the network.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import math
import pathlib
import re
from collections.abc import Iterator
from unittest import mock

import numpy as np
import torch
from ddiff_torch import schedule
from ddiff_torch.random_inputs import random_mask
from torch import Tensor

from method_vectors.author_code import Unconditional, environment, returns
from method_vectors.case import SIGMA, Case, Enough, start, truth
from method_vectors.noise import SIDE, draw


def diffpir(folder: str) -> Iterator[Case]:
    """The program main_ddpir_inpainting.py, with its exact solution of the data term."""
    steps, weight, zeta = 12, 2.0, 0.6
    mask = random_mask(np.random.default_rng(18), SIDE, SIDE)
    settings = {"method": "diffpir", "steps": steps, "lambda": weight, "zeta": zeta, "noise_std": SIGMA}
    case = Case("diffpir_inpaint_random", "inpaint_random", settings, mask=mask)
    with environment(folder, "cv2", "torchvision", "torchvision.utils", "matplotlib", "matplotlib.pyplot"):
        util = importlib.import_module("utils.utils_image")
        models = importlib.import_module("utils.utils_model")
        scripts = importlib.import_module("guided_diffusion.script_util")
        diffusion = scripts.create_gaussian_diffusion(steps=schedule.TRAIN_STEPS, learn_sigma=True, noise_schedule="linear")
        photograph = np.round((truth()[0].permute(1, 2, 0).numpy() + 1) / 2 * 255).astype(np.uint8)
        picture_of_mask = np.repeat(mask.transpose(1, 2, 0), 3, 2) * 255
        evaluate, tensor = models.model_fn, util.single2tensor4
        times = [schedule.TRAIN_STEPS - 1 - int(math.sqrt(v)) for v in np.linspace(0, schedule.TRAIN_STEPS**2, steps)]

        calls = itertools.count()

        def network(x: Tensor, **kwargs: object) -> Tensor:
            if next(calls) > 0:  # the input of the first call is the start
                case.record(x)
            return evaluate(x, **kwargs)

        def measured(image: np.ndarray) -> Tensor:
            out = tensor(image)
            if case.y is None:  # the first image is y in [0, 1]
                case.y = (out * 2 - 1) * torch.from_numpy(mask)
            return out

        def noise() -> Iterator[Tensor]:
            nothing = torch.zeros(1, 3, SIDE, SIDE)
            yield start()
            for t in times:
                yield from (nothing, nothing, draw(0, t))  # of p_sample, of eta = 0, and of zeta

        stand_ins = (
            mock.patch.multiple(
                util, get_image_paths=lambda _: ["picture.png"], mkdir=lambda _: None, single2tensor4=measured,
                imread_uint=lambda path, n_channels: photograph if path == "picture.png" else picture_of_mask,
            ),
            mock.patch.multiple(models, model_fn=network),
            mock.patch.multiple(scripts, create_model_and_diffusion=lambda **_: (Unconditional(), diffusion)),
            mock.patch.object(importlib.import_module("utils.utils_logger"), "logger_info", lambda *_, **__: None),
            mock.patch.multiple(torch, load=lambda *_, **__: {}, randn_like=returns(noise())),
        )  # fmt: skip
        # SIGMA is that of images in [-1, 1], the program's that of images in [0, 1].
        program = {
            "noise_level_img": SIGMA / 2, "iter_num": steps, "lambda_": weight, "zeta": zeta, "load_mask": True, "calc_LPIPS": False,
            "skip_type": "quad", "generate_mode": "DiffPIR",
        }  # fmt: skip
        text = (pathlib.Path(folder) / "main_ddpir_inpainting.py").read_text()
        for name, value in program.items():
            text, found = re.subn(rf"(?m)^    {name} +=.*$", f"    {name} = {value!r}", text, count=1)
            if not found:
                raise ValueError(f"main_ddpir_inpainting.py has no setting {name}")
        with contextlib.ExitStack() as stack:
            for s in stand_ins:
                stack.enter_context(s)
            try:
                exec(compile(text, "main_ddpir_inpainting.py", "exec"), {"__name__": "__main__"})
            except Enough:
                yield case
