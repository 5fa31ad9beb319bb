"""Steps of DPS, with the code of DPS2022/diffusion-posterior-sampling at effbde7."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from unittest import mock

import torch
from ddiff_torch import schedule
from torch import Tensor

from method_vectors.author_code import Progress, Unconditional, environment, returns
from method_vectors.case import SIGMA, Case, Enough, measure, start
from method_vectors.noise import SIDE, draw


def dps(folder: str) -> Iterator[Case]:
    """The sampler ddpm with the conditioning method ps."""
    model = Unconditional()
    with environment(folder, "matplotlib", "matplotlib.pyplot", "torchvision", "motionblur", "motionblur.motionblur", "tqdm", "tqdm.auto"):
        sys.modules["torchvision"].torch = torch
        sys.modules["tqdm.auto"].tqdm = Progress
        diffusion = importlib.import_module("guided_diffusion.gaussian_diffusion")
        conditions = importlib.import_module("guided_diffusion.condition_methods")
        measurements = importlib.import_module("guided_diffusion.measurements")
        for task, scale, options in (
            ("gaussian_deblur", 2.4, {"name": "gaussian_blur", "kernel_size": 7, "intensity": 0.375}),
            ("super_resolution", 2.4, {"name": "super_resolution", "in_shape": (1, 3, SIDE, SIDE), "scale_factor": 4}),
        ):
            steps = 12
            case = Case(f"dps_{task}", task, {"method": "dps", "steps": steps, "scale": scale})
            operator = measurements.get_operator(device="cpu", **options)
            noiser = measurements.get_noise("gaussian", sigma=SIGMA)
            # The step size of 256x256 images is that of these images times 256/SIDE.
            method = conditions.get_conditioning_method("ps", operator, noiser, scale=scale * SIDE / 256)
            sampler = diffusion.create_sampler("ddpm", 1000, "linear", "epsilon", "learned_range", False, True, False, [steps])
            case.y = measure(operator.forward)

            def noise(times: list[int], y: Tensor) -> Iterator[Tensor]:
                for t in times:
                    yield draw(0, t)
                    yield torch.zeros_like(y)  # of the noisy measurement, which ps does not use

            def condition(**kwargs: Tensor) -> tuple[Tensor, Tensor]:
                x, distance = method.conditioning(**kwargs)
                case.record(x)
                return x, distance

            with mock.patch.object(torch, "randn_like", returns(noise(schedule.respaced(steps), case.y))):
                try:
                    sampler.p_sample_loop(model, start(), case.y, condition, False, "")
                except Enough:
                    yield case
