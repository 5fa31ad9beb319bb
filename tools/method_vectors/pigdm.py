"""Steps of PiGDM, with the code of its authors for measurements without noise, NVlabs/RED-diff at 66482f2, or the noisy step of devzhk/InverseBench at b113d67.

The first code begins with the pseudoinverse of y; here it begins with noise. Its "cuda" is read as "cpu", and its classes for diffusion and guidance are a schedule
and the bundled prior. The second code has noise levels in place of times: its scheduler gives those of the schedule, and its network sees x in the scale of the prior.
"""

from __future__ import annotations

import contextlib
import importlib
import pathlib
import types
from collections.abc import Iterator
from unittest import mock

import numpy as np
import torch
from ddiff_torch.random_inputs import random_mask
from torch import Tensor

from method_vectors.author_code import Anything, Progress, alpha_bar, bundled, environment, returns
from method_vectors.case import SIGMA, Case, Enough, measure, start
from method_vectors.noise import SIDE, draw

STEPS = 11  # the last recorded one goes to time 0
TIMES = [i * (1000 // STEPS) for i in range(STEPS)]


def pigdm(folder: str) -> Iterator[Case]:
    """The cases of the code in folder."""
    return noisy(folder) if (pathlib.Path(folder) / "algo/pigdm.py").exists() else clean(folder)


def clean(folder: str) -> Iterator[Case]:
    """PGDM of RED-diff with its operator for inpainting."""
    network = bundled()

    class Diffusion:
        def alpha(self, t: Tensor) -> Tensor:
            return alpha_bar()[t + 1]

    case = Case("pigdm_inpaint_random", "inpaint_random", {"method": "pigdm", "steps": STEPS, "eta": 0.9, "noise_std": 0.0001})

    class Model:
        diffusion = Diffusion()
        calls = 0

        def __call__(self, x: Tensor, _y: Tensor, t: Tensor, scale: float) -> tuple[Tensor, Tensor]:
            if self.calls > 0:  # the input of the first call is the start
                case.record(x)
            self.calls += 1
            eps, a = network.noise(x, t[:1]), self.diffusion.alpha(t).view(-1, 1, 1, 1)
            return eps, (x - eps * (1 - a).sqrt()) / a.sqrt()

    algos = types.ModuleType("algos")
    algos.__path__ = [str(pathlib.Path(folder) / "algos")]
    empty = ("omegaconf", "matplotlib", "matplotlib.pyplot", "models", "models.classifier_guidance_model")
    with environment(folder, *empty, algos=algos):
        operators = importlib.import_module("utils.degredations")
        code: dict[str, object] = {"__name__": "algos.pgdm", "__package__": "algos"}
        text = (pathlib.Path(folder) / "algos/pgdm.py").read_text().replace("'cuda'", "'cpu'").replace("class PGDM(DDIM)", "class PGDM")
        exec(compile(text.replace("from .ddim import DDIM", ""), "pgdm.py", "exec"), code)
        case.mask = random_mask(np.random.default_rng(22), SIDE, SIDE)
        operator = operators.Inpainting2(3, SIDE, torch.from_numpy(case.mask).repeat(1, 3, 1, 1).bool(), "cpu")
        operator.set_indices(torch.tensor([0]))
        y = measure(operator.H)
        case.y = y.view(1, 3, SIDE, SIDE) * torch.from_numpy(case.mask)
        code["build_degredation_model"] = lambda _: operator
        algo = types.SimpleNamespace(awd=True, cond_awd=False, mcg=False, grad_term_weight=1.0, eta=case.settings["eta"], deg="inpaint")
        sampler = code["PGDM"](Model(), types.SimpleNamespace(algo=algo))
        sampler.initialize = lambda *_, **__: start()
        with mock.patch.object(torch, "randn_like", returns(draw(0, t) for t in reversed(TIMES))):
            try:
                sampler.sample(start(), None, TIMES, y_0=y)
            except Enough:
                yield case


def noisy(folder: str) -> Iterator[Case]:
    """PiGDM of InverseBench with the dense matrix of super-resolution by averages, without new noise: its share of it is not that of the paper."""
    network = bundled()
    levels = [float(((1 - alpha_bar()[t + 1]) / alpha_bar()[t + 1]).sqrt()) for t in reversed(TIMES)]
    case = Case("pigdm_super_resolution_area", "super_resolution_area", {"method": "pigdm", "steps": STEPS, "eta": 0.0, "noise_std": SIGMA})

    def average(x: Tensor) -> Tensor:
        return torch.nn.functional.avg_pool2d(x, 4)

    class Network:
        img_channels, img_resolution = 3, SIDE

        def __call__(self, x: Tensor, sigma: Tensor) -> Tensor:
            i = int(np.argmin([abs(level - float(sigma)) for level in levels]))
            scale = (1 + sigma**2).sqrt()
            if i > 0:
                case.record((x / scale).float())
            return x - sigma * network.noise((x / scale).float(), torch.tensor([TIMES[::-1][i]]))

    matrix = average(torch.eye(3 * SIDE * SIDE).view(-1, 3, SIDE, SIDE)).reshape(3 * SIDE * SIDE, -1).T
    case.y = measure(average)
    operator = types.SimpleNamespace(device="cpu", sigma_noise=SIGMA, A=matrix, unnormalize=lambda x: x, forward=average)
    scheduler = types.SimpleNamespace(sigma_max=(1 + levels[0] ** 2) ** 0.5, sigma_steps=[*levels, 0.0], num_steps=STEPS)
    progress = Anything("tqdm")
    progress.trange = Trange
    utils = types.ModuleType("utils.scheduler")
    utils.Scheduler = lambda **_: scheduler
    with environment(folder, "utils", "utils.helper", **{"tqdm": progress, "utils.scheduler": utils}), contextlib.ExitStack() as stack:
        module = importlib.import_module("algo.pigdm")
        stack.enter_context(mock.patch.multiple(torch, randn=lambda *_, **__: start(), randn_like=lambda x: torch.zeros_like(x)))
        try:
            module.PiGDM(Network(), operator, {}, eta=0.0, noisy=True).inference(case.y)
        except Enough:
            yield case


class Trange(Progress):
    """tqdm.trange."""

    def __init__(self, count: int) -> None:
        super().__init__(range(count))

    def set_description(self, _: str) -> None:
        pass
