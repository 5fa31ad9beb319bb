"""Steps of DAPS, with the code of zhangbingliang2019/DAPS at 098df6b.

DAPS asks for real-valued noise levels; the prior is evaluated at the nearest index of its schedule. torchdiffeq.odeint is Euler's
method on the given points, the only part of it that DAPS uses.
"""

from __future__ import annotations

import importlib
import types
from collections.abc import Callable, Iterator
from unittest import mock

import numpy as np
import torch
from ddiff_torch import schedule
from torch import Tensor, nn

from method_vectors.author_code import bundled, environment, returns
from method_vectors.case import Case, Enough, measure, start
from method_vectors.noise import SIDE, draw


class Denoiser(nn.Module):
    """The bundled prior as DAPS calls it: the score of x + sigma n."""

    def __init__(self) -> None:
        super().__init__()
        self.network = bundled()
        self.unused = nn.Parameter(torch.zeros(1))  # DAPS asks a parameter for its device
        self.levels = noise_levels()

    def score(self, x: Tensor, sigma: Tensor) -> Tensor:
        t = nearest(self.levels, float(sigma))
        return -self.network.noise(x / (1 + sigma**2).sqrt(), torch.tensor([t])) / sigma


def noise_levels() -> np.ndarray:
    """sqrt((1-abar_t)/abar_t) for t = 0 .. T-1."""
    abar = schedule.alpha_bar()
    return np.sqrt((1 - abar) / abar)


def nearest(levels: np.ndarray, sigma: float) -> int:
    return int(np.abs(np.log(levels / sigma)).argmin())


def noise_times(sigmas: list[float]) -> list[int]:
    """The time in the key of each step's noise."""
    times = [nearest(noise_levels(), sigma) for sigma in sigmas]
    if len(set(times)) < len(times):
        raise ValueError("two steps have one time")
    return times


def euler(f: Callable[[Tensor, Tensor], Tensor], x: Tensor, times: Tensor, **_: object) -> Tensor:
    """torchdiffeq.odeint with the method euler."""
    out = [x]
    for now, then in zip(times[:-1], times[1:]):
        out.append(out[-1] + (then - now) * f(now, out[-1]))
    return torch.stack(out)


def daps(folder: str) -> Iterator[Case]:
    """The sampler DAPS in pixel space with each of its Markov chains."""
    ode = types.ModuleType("torchdiffeq")
    ode.odeint = ode.odeint_adjoint = euler
    with environment(folder, "tqdm", torchdiffeq=ode):
        sampler = importlib.import_module("sampler")
        operators = importlib.import_module("forward_operator")
        model, steps = Denoiser(), 12
        hmc = {"lr": 9.75e-6, "lr_min_ratio": 0.019, "momentum": 0.73}
        for name, task, operator, chain in (
            ("langevin", "gaussian_deblur", operators.GaussianBlur(7, 0.375, "cpu"), {"lr": 2e-5}),
            ("hmc", "phase_retrieval", operators.PhaseRetrieval(2.0, SIDE), hmc),
        ):
            count = 12
            settings = {"lr_min_ratio": 0.01, "tau": 0.01} | chain
            ours = {"lr_ratio" if key == "lr_min_ratio" else key: value for key, value in settings.items()}
            case = Case(f"daps_{name}", task, {"method": "daps", "steps": steps, "chain": name, "chain_steps": count} | ours)
            levels = {"name": "edm", "timestep": "poly-7"}
            method = sampler.get_sampler(
                latent=False,
                annealing_scheduler_config=levels | {"num_steps": steps, "sigma_max": 100, "sigma_min": 0.1},
                diffusion_scheduler_config=levels | {"num_steps": 5, "sigma_min": 0.01},
                mcmc_sampler_config={"num_steps": count, "mc_algo": name, "prior_solver": "gaussian"} | settings,
            )
            case.y = measure(operator)
            times = noise_times([float(v) for v in method.annealing_scheduler.sigma_steps[:steps]])

            def normals(name: str, count: int, times: list[int]) -> Iterator[Tensor]:
                for t in times:
                    if name == "hmc":
                        yield draw(1, t)
                    for i in range(count):
                        yield draw(2, t, i)
                    yield draw(0, t)

            def record(xt: Tensor, *_: object) -> None:
                case.record(xt)

            method._record = record  # it gets every state
            likes = mock.patch.multiple(torch, randn_like=returns(normals(name, count, times)))
            with likes:
                try:
                    method.sample(model, start() * method.annealing_scheduler.get_prior_sigma(), operator, case.y, record=True)
                except Enough:
                    yield case
