"""Steps of DDRM, with the code of bahjat-kawar/ddrm at 32b6b3c.

The code draws noise in the space of the singular vectors, three times in a step. Each draw is that of internal/restore/noise, which is one
per step in pixels, times the transpose of the code's V. Its "cuda" is read as "cpu".
"""

from __future__ import annotations

import importlib
import pathlib
import sys
import types
from collections.abc import Iterator
from unittest import mock

import numpy as np
import torch
from ddiff_torch import schedule
from ddiff_torch.random_inputs import random_mask
from torch import Tensor

from method_vectors.author_code import Progress, Unconditional, alpha_bar, environment, returns, strided
from method_vectors.case import SIGMA, STEPS, Case, measure, start
from method_vectors.noise import SIDE, draw


def ddrm(folder: str) -> Iterator[Case]:
    """efficient_generalized_steps with the code's operators for inpainting and bicubic super-resolution."""
    steps = 20
    network = Unconditional()
    with environment(folder, "torchvision", "torchvision.utils"), mock.patch.dict(sys.modules, tqdm=types.ModuleType("tqdm")):
        sys.modules["tqdm"].tqdm = Progress
        operators = importlib.import_module("functions.svd_replacement")
        text = (pathlib.Path(folder) / "functions/denoising.py").read_text()
        code: dict[str, object] = {}
        exec(compile(text.replace("to('cuda')", "to('cpu')"), "denoising.py", "exec"), code)
        mask = random_mask(np.random.default_rng(20), SIDE, SIDE)
        for name, task, eta, eta_b in (
            ("ddrm_inpaint_random", "inpaint_random", 0.85, 1.0),
            ("ddrm_super_resolution", "super_resolution", 0.7, 0.9),
        ):
            settings = {"method": "ddrm", "steps": steps, "eta": eta, "eta_b": eta_b, "noise_std": SIGMA}
            case = Case(name, task, settings)
            if task == "inpaint_random":
                case.mask = mask
                missing = torch.nonzero(torch.from_numpy(mask).reshape(-1) == 0).reshape(-1) * 3
                operator = operators.Inpainting(3, SIDE, torch.cat([missing, missing + 1, missing + 2]), "cpu")
            else:
                operator = operators.SRConv(cubic(4), 3, SIDE, "cpu", stride=4)
            y = measure(operator.H)
            case.y = operator.V(operator.add_zeros(y)) if task == "inpaint_random" else y
            case.y = case.y.view(1, 3, SIDE, SIDE) if task == "inpaint_random" else y.view(1, 3, SIDE // 4, SIDE // 4)
            times, singulars = strided(steps), operator.singulars()

            def noise() -> Iterator[Tensor]:
                for t, s in zip(reversed(times), reversed([-1, *times[:-1]])):  # noqa: B023
                    z = operator.Vt(draw(0, t)).view(1, -1)  # noqa: B023
                    level = ((1 - alpha_bar()[s + 1]) / alpha_bar()[s + 1]).sqrt()
                    after = singulars * level < SIGMA  # noqa: B023
                    m = singulars.numel()  # noqa: B023
                    yield z
                    yield z[:, :m][:, after]
                    yield z[:, :m]

            betas = torch.from_numpy(1 - schedule.alpha_bar() / np.concatenate([[1.0], schedule.alpha_bar()[:-1]])).float()
            first = operator.Vt(start()).view(1, 3, SIDE, SIDE)
            with mock.patch.object(torch, "randn_like", returns(noise())):
                states, _ = code["efficient_generalized_steps"](
                    first, times, lambda x, t: network(x, t.long()), betas, operator, y, SIGMA, eta_b, eta, eta)  # fmt: skip
            case.states = [x.detach().clone() for x in states[1 : STEPS + 1]]
            yield case


def cubic(factor: int) -> Tensor:
    """The kernel of DDRM's runner for sr_bicubic: cubic interpolation with a = -1/2, stretched."""
    x = np.abs((np.arange(factor * 4) - factor * 2 + 0.5) / factor)
    k = np.where(x <= 1, 1.5 * x**3 - 2.5 * x**2 + 1, -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2)
    return torch.from_numpy(k / k.sum()).float()
