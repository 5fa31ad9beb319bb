"""Steps of FAST-DIPS, with the code of ququlza/FAST-DIPS at 8dd7dfb.

FAST-DIPS asks for real-valued noise levels; the prior is evaluated at the nearest index of its schedule. torch.func, which the pixel sampler does not use, is empty.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from unittest import mock

import torch
from torch import Tensor, nn

from method_vectors.author_code import environment, returns
from method_vectors.case import Case, Enough, measure, start
from method_vectors.daps import Denoiser, noise_times
from method_vectors.noise import SIDE, draw


class Model(Denoiser):
    """The bundled prior as FAST-DIPS calls it: the clean image of x + sigma n."""

    def tweedie(self, x: Tensor, sigma: Tensor) -> Tensor:
        return x + sigma**2 * self.score(x, sigma)


def fast_dips(folder: str) -> Iterator[Case]:
    """The sampler FAST_DIPS in pixel space, for a linear operator and one with backtracking."""
    empty = (
        "data", "imageio", "lpips", "model", "piq", "prettytable", "setproctitle", "skimage", "skimage.metrics", "torch.func", "torchmetrics",
        "torchmetrics.functional", "torchvision", "torchvision.models", "torchvision.utils", "tqdm", "wandb", "yaml",
    )  # fmt: skip
    with environment(folder, *empty):
        code = importlib.import_module("main")
        operators = importlib.import_module("forward_operators")
        model: nn.Module = Model()
        for task, operator, values in (
            ("super_resolution", operators.DownSampling(SIDE, 4, "cpu"), {"admm_steps": 3, "descent_steps": 1, "rho": 200.0}),
            ("hdr", operators.HighDynamicRange("cpu"), {"admm_steps": 2, "descent_steps": 5, "rho": 5.0}),
        ):
            steps = 10
            case = Case(f"fast_dips_{task}", task, {"method": "fast_dips", "steps": steps, "epsilon": 0.05} | values)
            levels = {"name": "edm", "timestep": "poly-7", "num_steps": steps, "sigma_max": 100, "sigma_min": 0.1}
            sampler = code.FAST_DIPS(levels, rho=values["rho"], K=values["admm_steps"], S=values["descent_steps"], epsilon=0.05)
            case.y = measure(operator)
            sigmas = [float(v) for v in sampler.diffusion_scheduler.sigma_steps[:steps]]

            def record(xt: Tensor, *_: object) -> None:
                case.record(xt.clamp(-1, 1) if len(case.states) == steps - 1 else xt)  # noqa: B023

            sampler._record = record  # it gets every state; the last one is clipped after the loop
            with mock.patch.object(torch, "randn_like", returns(draw(0, t) for t in noise_times(sigmas))):
                try:
                    sampler.sample(model, start() * sampler.diffusion_scheduler.get_prior_sigma(), operator, case.y, record=True)
                except Enough:
                    yield case
