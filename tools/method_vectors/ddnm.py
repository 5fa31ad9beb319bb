"""Steps of DDNM, with the code of wyhuai/DDNM at 00b58ea.

Its "cuda" is read as "cpu". Its noise of super-resolution takes the values of the noise and of the network's noise in a patch for coefficients of the singular
vectors, which rotates them; here they are multiplied by the transpose of the code's V first.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import pathlib
import sys
import types
from collections.abc import Callable, Iterator
from unittest import mock

import numpy as np
import torch
from ddiff_torch import schedule
from ddiff_torch.random_inputs import random_mask
from torch import Tensor

from method_vectors.author_code import Progress, Unconditional, environment, returns
from method_vectors.case import SIGMA, Case, Enough, measure, start
from method_vectors.noise import SIDE, draw


def ddnm(folder: str) -> Iterator[Case]:
    """ddnm_diffusion and ddnm_plus_diffusion, with the code's operators for inpainting and super-resolution by averages."""
    steps = 11  # the last recorded one goes to time 0, where y is noisier than the level
    network = Unconditional()
    progress = types.ModuleType("tqdm")
    progress.tqdm = Progress
    with environment(folder, "cv2", "torchvision", "torchvision.utils", tqdm=progress):
        operators = importlib.import_module("functions.svd_operators")
        code: dict[str, object] = {}
        text = (pathlib.Path(folder) / "functions/svd_ddnm.py").read_text()
        exec(compile(text.replace("'cuda'", "'cpu'"), "svd_ddnm.py", "exec"), code)
        mask = random_mask(np.random.default_rng(21), SIDE, SIDE)
        for name, task, eta, sigma in (
            ("ddnm_inpaint_random", "inpaint_random", 0.85, 0.0),
            ("ddnm_super_resolution_area", "super_resolution_area", 0.7, 0.0),
            ("ddnm_plus_inpaint_random", "inpaint_random", 0.85, SIGMA),
            ("ddnm_plus_super_resolution_area", "super_resolution_area", 0.7, SIGMA),
        ):
            case = Case(name, task, {"method": "ddnm", "steps": steps, "eta": eta, "noise_std": sigma})
            if task == "inpaint_random":
                case.mask = mask
                missing = torch.nonzero(torch.from_numpy(mask).reshape(-1) == 0).reshape(-1) * 3
                operator = operators.Inpainting(3, SIDE, torch.cat([missing, missing + 1, missing + 2]), "cpu")
            else:
                operator = operators.SuperResolution(3, SIDE, 4, "cpu")
                operator.Lambda_noise = functools.partial(turned, operator, operator.Lambda_noise)
            y = measure(operator.A)
            case.y = operator.V(operator.add_zeros(y)).view(1, 3, SIDE, SIDE) if case.mask is not None else y.view(1, 3, SIDE // 4, SIDE // 4)
            betas = torch.from_numpy(1 - schedule.alpha_bar() / np.concatenate([[1.0], schedule.alpha_bar()[:-1]])).float()
            travel = types.SimpleNamespace(T_sampling=steps, travel_length=1, travel_repeat=1)
            config = types.SimpleNamespace(diffusion=types.SimpleNamespace(num_diffusion_timesteps=schedule.TRAIN_STEPS), time_travel=travel)

            calls = itertools.count()

            def predict(x: Tensor, t: Tensor) -> Tensor:
                if next(calls) > 0:  # noqa: B023  # the input of the first call is the start
                    case.record(x)  # noqa: B023
                return network(x, t.long())

            run = functools.partial(code["ddnm_plus_diffusion"], sigma_y=sigma) if sigma > 0 else code["ddnm_diffusion"]
            with mock.patch.object(torch, "randn_like", returns(draw(0, i * (schedule.TRAIN_STEPS // steps)) for i in reversed(range(steps)))):
                try:
                    run(start(), predict, betas, eta, operator, y, config=config)
                except Enough:
                    yield case


def turned(operator: object, noise: Callable[..., Tensor], vec: Tensor, a: Tensor, sigma_y: float, sigma_t: Tensor, eta: float, epsilon: Tensor) -> Tensor:
    """Lambda_noise of coefficients."""

    def coefficients(x: Tensor) -> Tensor:
        n, r = operator.y_dim, operator.ratio
        patches = x.view(1, 3, n, r, n, r).permute(0, 1, 2, 4, 3, 5).reshape(-1, r * r) @ operator.V_small
        return patches.view(1, 3, n, n, r, r).permute(0, 1, 2, 4, 3, 5).reshape(1, -1)

    return noise(coefficients(vec), a, sigma_y, sigma_t, eta, coefficients(epsilon))
