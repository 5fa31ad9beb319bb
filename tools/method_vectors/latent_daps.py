"""Steps of LatentDAPS, with the code of zhangbingliang2019/DAPS at 098df6b, with the stand-ins of daps.py and the prior of haar.py.

The code shows the states as images only: the recorded ones are their latents.
"""

from __future__ import annotations

import importlib
import types
from collections.abc import Iterator
from unittest import mock

import torch
from torch import Tensor, nn

from method_vectors.author_code import environment, returns
from method_vectors.case import Case, Enough, measure, start
from method_vectors.daps import euler, nearest, noise_levels, noise_times
from method_vectors.haar import LATENT, Latents, decode, encode
from method_vectors.noise import draw


class Denoiser(nn.Module):
    """The prior as DAPS calls it: the score of z + sigma n, and the decoder."""

    def __init__(self) -> None:
        super().__init__()
        self.latents = Latents()
        self.unused = nn.Parameter(torch.zeros(1))  # DAPS asks a parameter for its device
        self.levels = noise_levels()

    def score(self, z: Tensor, sigma: Tensor) -> Tensor:
        t = nearest(self.levels, float(sigma))
        return -self.latents.noise(z / (1 + sigma**2).sqrt(), torch.tensor([t])) / sigma

    def decode(self, z: Tensor) -> Tensor:
        return decode(z)


def latent_daps(folder: str) -> Iterator[Case]:
    """The sampler LatentDAPS, a whole run of Gaussian deblurring."""
    ode = types.ModuleType("torchdiffeq")
    ode.odeint = ode.odeint_adjoint = euler
    with environment(folder, "tqdm", torchdiffeq=ode):
        sampler = importlib.import_module("sampler")
        operators = importlib.import_module("forward_operator")
        steps, count, evaluations = 10, 12, 3
        chain = {"lr": 2e-5, "tau": 0.02, "momentum": 0.7}
        settings = {"method": "latent_daps", "steps": steps, "ode_steps": evaluations, "chain_steps": count, "lr_ratio": 0.1}
        case = Case("latent_daps_gaussian_deblur", "gaussian_deblur", settings | chain)
        operator = operators.GaussianBlur(7, 0.375, "cpu")
        levels = {"name": "edm", "timestep": "poly-7"}
        method = sampler.get_sampler(
            latent=True,
            annealing_scheduler_config=levels | {"num_steps": steps, "sigma_max": 10, "sigma_min": 0.1},
            diffusion_scheduler_config=levels | {"num_steps": evaluations, "sigma_min": 0.001},
            mcmc_sampler_config={"num_steps": count, "mc_algo": "hmc", "prior_solver": "gaussian", "lr_min_ratio": 0.1} | chain,
        )
        case.y = measure(operator)
        times = noise_times([float(v) for v in method.annealing_scheduler.sigma_steps[:steps]])

        def normals() -> Iterator[Tensor]:
            for t in times:
                yield draw(1, t).view(LATENT)
                for i in range(count):
                    yield draw(2, t, i).view(LATENT)
                yield draw(0, t).view(LATENT)

        def record(xt: Tensor, *_: object) -> None:
            case.record(encode(xt))

        method._record = record  # it gets every state
        with mock.patch.object(torch, "randn_like", returns(normals())):
            try:
                method.sample(Denoiser(), start().view(LATENT) * method.annealing_scheduler.get_prior_sigma(), operator, case.y, record=True)
            except Enough:
                yield case
