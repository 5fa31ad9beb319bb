"""Steps of DCDP, with the code of Morefre/Decoupled-Data-Consistency-with-Diffusion-Purification-for-Image-Restoration at fa89ad3.

The code draws the noise of y itself: it gets that of the other cases.
"""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Iterator
from unittest import mock

import numpy as np
import torch
from ddiff_torch.random_inputs import random_mask
from torch import Tensor

from method_vectors.author_code import Progress, Unconditional, environment, returns
from method_vectors.case import SIGMA, STEPS, Case, measure, truth
from method_vectors.noise import SIDE, draw


def dcdp(folder: str) -> Iterator[Case]:
    """Diffusion_Purified_CSGM for super-resolution, and for inpainting with turns at the last times."""
    empty = ("matplotlib", "matplotlib.pyplot", "torchvision", "torchvision.transforms", "motionblur", "motionblur.motionblur", "tqdm", "tqdm.auto",
             "skimage", "skimage.metrics", "torchmetrics", "torchmetrics.image", "torchmetrics.image.lpip", "data", "data.dataloader")  # fmt: skip
    with environment(folder, *empty):
        sys.modules["tqdm.auto"].tqdm = Progress
        sys.modules["torchvision"].torch = torch
        module = importlib.import_module("dcdp")
        conditions = importlib.import_module("guided_diffusion.condition_methods")
        measurements = importlib.import_module("guided_diffusion.measurements")
        mask = random_mask(np.random.default_rng(21), SIDE, SIDE)
        for task, options, first, lr in (
            ("super_resolution", {"name": "super_resolution", "in_shape": (1, 3, SIDE, SIDE), "scale_factor": 4}, 400, 2000.0),
            ("inpaint_random", {"name": "inpainting"}, 18, 20000.0),
        ):
            turns, descents, evaluations, momentum = STEPS, 8, 5, 0.8
            settings = {"csgm_num_iterations": descents, "lr": lr, "momentum": momentum, "ddim_init_timestep": first, "ddim_end_timestep": 0,
                        "ddim_num_iterations": evaluations}  # fmt: skip
            case = Case(f"dcdp_{task}", task, {"method": "dcdp", "steps": turns} | settings)
            given = None
            if task == "inpaint_random":
                case.mask = mask
                given = torch.from_numpy(mask)[None]
            operator = measurements.get_operator(device="cpu", **options)
            kind = "inpainting" if given is not None else "super_resolution"
            case.y = measure(lambda x: operator.forward(x, mask=given))  # noqa: B023
            added = (case.y - operator.forward(truth(), mask=given)) / SIGMA
            if given is not None:
                case.y = case.y * given
            times = module.Purification_Schedule(turns, first, 0)

            def noise() -> Iterator[Tensor]:
                for t in times:  # noqa: B023
                    yield draw(0, int(t) - 1)
                    for _ in range(min(max(int(t), 2), evaluations)):  # noqa: B023
                        yield torch.zeros(1, 3, SIDE, SIDE)  # of eta = 0

            solve = module.CSGM_Solver_Pixel_Space

            def solved(measurement: Tensor, x: Tensor, *args: object, **kwargs: object) -> tuple[Tensor, list[Tensor]]:
                case.states.append(x.detach().clone())  # noqa: B023
                return solve(measurement, x, *args, **kwargs)  # noqa: B023

            condition = conditions.get_conditioning_method("vanilla", operator, types.SimpleNamespace(__name__="gaussian"), scale=0)
            with (
                mock.patch.multiple(module, CSGM_Solver_Pixel_Space=solved),
                mock.patch.multiple(torch, randn=lambda _: added, randn_like=returns(noise())),  # noqa: B023
            ):
                # The learning rate of 256x256 images is that of these images times (256/SIDE)^2.
                last, _ = module.Diffusion_Purified_CSGM(
                    Unconditional(), truth(), turns, descents, "cpu", condition, first, 0, operator, kind, SIGMA, mask=given,
                    ddim_num_iterations=evaluations, optimizer="SGD", momentum=momentum, lr=lr * (SIDE / 256) ** 2, save_every_main=10**6,
                    save_every_sub=10**6, root_path="")  # fmt: skip
            case.states = [*case.states[1:], last.detach().clone()]
            yield case
