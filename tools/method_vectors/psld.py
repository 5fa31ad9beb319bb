"""Steps of PSLD, with the code of LituRout/PSLD at d734647.

The model is that of haar.py, with whose schedule the code has the times of this project and ends at abar = 1. The code adds new
measurement noise to A(x) in each step: it gets its noise "clean". The y of inpainting is 0 at unobserved pixels. Its "cuda" is read as "cpu".
"""

from __future__ import annotations

import importlib
import pathlib
import sys
from collections.abc import Iterator
from unittest import mock

import numpy as np
import torch
from ddiff_torch.random_inputs import random_mask
from torch import Tensor

from method_vectors.author_code import Progress, environment
from method_vectors.case import Case, Enough, measure, start
from method_vectors.haar import LATENT, Latents, strides
from method_vectors.noise import SIDE, draw


def psld(folder: str) -> Iterator[Case]:
    """DDIMSampler for super-resolution, a whole run, and with its own branch for inpainting."""
    operators = str(pathlib.Path(folder) / "diffusion-posterior-sampling")
    empty = ("matplotlib", "matplotlib.pyplot", "torchvision", "motionblur", "motionblur.motionblur", "einops", "PIL", "tqdm")
    with environment(str(pathlib.Path(folder) / "stable-diffusion"), *empty), environment(operators):
        sys.modules["torchvision"].torch = torch
        sys.modules["tqdm"].tqdm = Progress
        module = importlib.import_module("ldm.models.diffusion.psld")
        measurements = importlib.import_module("guided_diffusion.measurements")
        model, mask = Latents(), random_mask(np.random.default_rng(22), SIDE, SIDE)
        for task, steps, options, more in (
            ("super_resolution", 10, {"name": "super_resolution", "in_shape": (1, 3, SIDE, SIDE), "scale_factor": 4},
             {"gamma": 0.1, "omega": 0.9, "eta": 0.0}),
            ("inpaint_random", 28, {"name": "inpainting"}, {"gamma": 0.7, "omega": 0.3, "eta": 0.6}),
        ):  # fmt: skip
            case = Case(f"psld_{task}", task, {"method": "psld", "steps": steps} | more)
            given = None
            if task == "inpaint_random":
                case.mask = mask
                given = torch.from_numpy(mask)[None]
            operator = measurements.get_operator(device="cpu", **options)
            case.y = measure(lambda x: operator.forward(x, mask=given))  # noqa: B023
            if given is not None:
                case.y = case.y * given
            asked, times = strides(steps)
            noise = iter([draw(0, t).view(LATENT) for t in times])
            sampler = module.DDIMSampler(model)
            step = sampler.p_sample_ddim

            def recorded(*args: object, **kwargs: object) -> tuple[Tensor, Tensor]:
                z, clean = step(*args, **kwargs)  # noqa: B023
                case.record(z)  # noqa: B023
                return z, clean

            with (
                mock.patch.object(module.DDIMSampler, "register_buffer", object.__setattr__),
                mock.patch.object(sampler, "p_sample_ddim", recorded),
                mock.patch.object(torch, "randn", lambda *_, **__: next(noise)),  # noqa: B023
            ):
                try:
                    sampler.sample(
                        asked, 1, LATENT[1:], eta=more["eta"], verbose=False, x_T=start().view(LATENT), ip_mask=given, measurements=case.y,
                        operator=operator, gamma=more["gamma"], omega=more["omega"], inpainting=given is not None, general_inverse=given is None,
                        noiser=measurements.get_noise("clean"))  # fmt: skip
                except Enough:
                    yield case
