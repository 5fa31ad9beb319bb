"""Steps of RED-diff, with the code of NVlabs/RED-diff at 66482f2.

The steps of Adam are recorded where they end. The learning rates are small: Adam's first step moves each entry by the learning
rate, so that rounding decides where a gradient is nearly 0. The code's classes for diffusion and guidance, which need CUDA, are a
schedule and the bundled prior.
"""

from __future__ import annotations

import importlib
import pathlib
import types
from collections.abc import Iterator
from unittest import mock

import numpy as np
import torch
from ddiff_torch.random_inputs import random_mask
from torch import Tensor

from method_vectors.author_code import alpha_bar, bundled, environment, returns, strided
from method_vectors.case import Case, Enough, measure
from method_vectors.noise import SIDE, draw


def reddiff(folder: str) -> Iterator[Case]:
    """The algorithm REDDIFF with its operators for inpainting and super-resolution by averages."""
    network, steps = bundled(), 20
    algos = types.ModuleType("algos")
    algos.__path__ = [str(pathlib.Path(folder) / "algos")]

    class Diffusion:
        def alpha(self, t: Tensor) -> Tensor:
            return alpha_bar()[t + 1]

    class Model:
        diffusion = Diffusion()

        def __call__(self, x: Tensor, _y: Tensor, t: Tensor, scale: float) -> tuple[Tensor, Tensor]:
            eps, a = network.noise(x, t[:1]), self.diffusion.alpha(t).view(-1, 1, 1, 1)
            return eps, (x - eps * (1 - a).sqrt()) / a.sqrt()

    empty = ("omegaconf", "matplotlib", "matplotlib.pyplot", "models", "models.classifier_guidance_model")
    with environment(folder, *empty, algos=algos):
        module = importlib.import_module("algos.reddiff")
        operators = importlib.import_module("utils.degredations")
        mask = random_mask(np.random.default_rng(19), SIDE, SIDE)
        for name, task, more in (
            ("reddiff_inpaint_random", "inpaint_random", {"denoise_term_weight": "linear", "grad_term_weight": 0.25, "lr": 0.002}),
            ("reddiff_super_resolution_area", "super_resolution_area", {"denoise_term_weight": "log", "grad_term_weight": 0.7, "lr": 0.01}),
        ):
            case = Case(name, task, {"method": "reddiff", "steps": steps, "obs_weight": 0.8} | more)
            if task == "inpaint_random":
                case.mask = mask
                operator = operators.Inpainting2(3, SIDE, torch.from_numpy(mask).repeat(1, 3, 1, 1).bool(), "cpu")
                operator.set_indices(torch.tensor([0]))
            else:
                operator = operators.SuperResolution(3, SIDE, 4, "cpu")
            y = measure(operator.H)
            case.y = y.view(1, 3, SIDE, SIDE) * torch.from_numpy(mask) if case.mask is not None else y.view(1, 3, SIDE // 4, SIDE // 4)

            class Recorded(torch.optim.Adam):
                def step(self) -> None:
                    super().step()
                    case.record(self.param_groups[0]["params"][0])  # noqa: B023

            algo = types.SimpleNamespace(awd=True, cond_awd=False, eta=0.0, sigma_x0=0.0, sigma_y=0.0, deg=task, **case.settings)
            config = types.SimpleNamespace(algo=algo, exp=types.SimpleNamespace(save_evolution=False))

            def noise() -> Iterator[Tensor]:
                for t in reversed(strided(steps)):
                    yield torch.zeros(1, 3, SIDE, SIDE)  # of sigma_x0 = 0
                    yield draw(0, t)

            with (
                mock.patch.object(module, "build_degredation_model", lambda _: operator),  # noqa: B023
                mock.patch.object(torch.optim, "Adam", Recorded),
                mock.patch.object(torch, "randn_like", returns(noise())),
            ):
                try:
                    module.REDDIFF(Model(), config).sample(torch.zeros(1, 3, SIDE, SIDE), None, strided(steps), y_0=y)
                except Enough:
                    yield case
