"""Steps of PnP-DM, with the code of zihuiwu/PnP-DM-public at ca65f9b.

Its network takes real noise levels; the prior is evaluated at the nearest index of its schedule. Its exact draw takes the noise for coefficients of the
singular vectors; here it is multiplied by the transpose of the code's V first. Where rho falls, its denoiser is made anew for each step with the levels from rho, as in
this program; where rho is constant, it is that of the code.
"""

from __future__ import annotations

import importlib
import types
from collections.abc import Iterator
from unittest import mock

import torch
from torch import Tensor

from method_vectors.author_code import Progress, environment, returns
from method_vectors.case import SIGMA, STEPS, Case, Enough, measure, start
from method_vectors.daps import Denoiser
from method_vectors.noise import SIDE, draw

LOWEST = 0.02  # of the levels


class Net(Denoiser):
    """The bundled prior as PnP-DM calls it: the clean image of x + sigma n."""

    sigma_min = 0.002

    def __init__(self, sigma_max: float) -> None:
        super().__init__()
        self.sigma_max = sigma_max

    def forward(self, x: Tensor, sigma: Tensor) -> Tensor:
        sigma = sigma.float()
        return (x + sigma**2 * self.score(x.float(), sigma)).detach()

    def round_sigma(self, sigma: Tensor) -> Tensor:
        return sigma


def pnpdm(folder: str) -> Iterator[Case]:
    """The class for batches in its mode edm_sde: super-resolution by averages with a constant and a falling rho, and Langevin dynamics in phase retrieval."""
    steps, count, chain = STEPS + 1, 6, 100
    progress = types.ModuleType("tqdm")
    progress.tqdm = Progress
    with environment(folder, "matplotlib", "matplotlib.pyplot", "motionblur", "motionblur.motionblur", tqdm=progress):
        sampler = importlib.import_module("pnpdm.samplers.pnp_edm.pnp_edm")
        tasks = importlib.import_module("pnpdm.tasks")
        for name, task, rho, decay in (
            ("pnpdm_constant", "super_resolution_area", 0.4, 1.0),
            ("pnpdm_super_resolution_area", "super_resolution_area", 2.0, 0.8),
            ("pnpdm_phase_retrieval", "phase_retrieval", 1.0, 0.7),
        ):
            settings = {"rho": rho, "rho_decay": decay, "rho_min": 0.3, "sde_steps": count, "sigma_min": LOWEST, "noise_std": SIGMA}
            case = Case(name, task, {"method": "pnpdm", "steps": steps} | settings)
            config = types.SimpleNamespace(
                mode="edm_sde", num_iters=steps, rho=rho * (1 + 1e-9), rho_decay_rate=decay, rho_min=0.3, num_samples_per_run=1,
                common_kwargs={"num_steps": count, "sigma_min": LOWEST}, edm_kwargs={"solver": "euler"},
            )  # fmt: skip
            if task == "phase_retrieval":
                operator = tasks.PhaseRetrieval(2.0 * SIDE / 256, "cpu")
            else:
                operator = tasks.SuperResolution(3, SIDE, 4, "cpu")
            case.y = measure(operator.forward)
            method = sampler.PnPEDMBatch(config, Net(rho), operator, types.SimpleNamespace(sigma=SIGMA), "cpu")

            def anew(z: Tensor, rho: float) -> Tensor:
                return sampler.Denoiser_EDM(Net(rho), "cpu", num_steps=count, sigma_min=LOWEST, solver="euler", mode="sde")(z, 2 * rho)

            denoiser = anew if decay < 1 else method.edm

            def record(z: Tensor, rho: float) -> Tensor:
                x = denoiser(z, rho).float()  # noqa: B023
                case.record(x)  # noqa: B023
                return x

            method.edm = record

            def normals() -> Iterator[Tensor]:
                for t in reversed(range(steps)):
                    if case.task == "phase_retrieval":  # noqa: B023
                        yield from (draw(0, t, i) for i in range(chain))
                    else:
                        yield operator.Vt(draw(0, t)).view(1, 3, SIDE, SIDE)  # noqa: B023
                    yield from (draw(1, t, i) for i in range(count - 1))

            y = case.y if task == "phase_retrieval" else case.y.reshape(1, -1)
            case.y = case.y if task == "phase_retrieval" else case.y.view(1, 3, SIDE // 4, SIDE // 4)
            likes = mock.patch.multiple(torch, randn=lambda *_, **__: start(), randn_like=returns(normals()))
            with likes:
                try:
                    method(torch.zeros(1, 3, SIDE, SIDE), y)
                except Enough:
                    yield case
