"""DDiff (Algorithm 1) and its three variants.

One step from t to s, with A, y, the weight w and the prior's noise estimate eps_theta:

    ddiff           z   = clip((x_t - sqrt(1-abar_t) eps_theta(x_t, t)) / sqrt(abar_t), -1, 1)
                    x   = v - gamma_t g,   v = z - u,   g = grad_v ||w (y - A(v))||_2, or another of GRADIENTS
                    e   = (x_t - sqrt(abar_t) x) / sqrt(1-abar_t)
                    x_s = sqrt(abar_s) (x + u) + sqrt(1-abar_s-sigma_t^2) e + sigma_t eps
                    u   = u + x - z              (after x_s, which uses the old u)
    ddiff_hqs       like ddiff, with u = 0
    diff_pnp_admm   z is the denoised x_t + u;  x as in ddiff;  x_s = x;  u = u + x - z
    diff_pnp_hqs    like diff_pnp_admm, with u = 0

u starts at 0. The result is x_s of the last step; with answer "x_t", in ddiff and ddiff_hqs, the last step leaves the state as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Callable, Optional, Sequence

import torch
from torch import Tensor

from .operators import Measurement, data_norm, norm_gradient, squared_gradient, unit_gradient
from .schedule import SIGMA_RULES, TRAIN_STEPS, plan

# A noise estimate: state (N,C,H,W) and index t -> eps with the shape of the state. If a prior has a method `image` with the
# same arguments, the solver calls it instead; it returns the clean image.
Prior = Callable[[Tensor, int], Tensor]

METHODS = ("ddiff", "ddiff_hqs", "diff_pnp_admm", "diff_pnp_hqs")
GRADIENTS = {"norm": norm_gradient, "squared": squared_gradient, "unit": unit_gradient}
ANSWERS = ("x_plus_u", "x_t")


@dataclass(frozen=True)
class Config:
    """Settings of the iteration. t_gamma and t0 are indices of the training schedule."""

    method: str
    steps: int
    gamma0: float
    t_gamma: int
    a: float
    b: float
    t0: int
    sigma_rule: str
    gradient: str
    answer: str = "x_plus_u"

    def validate(self) -> None:
        """Raises ValueError that names the first field out of range."""
        for name, value, allowed in (
            ("method", self.method, METHODS),
            ("sigma_rule", self.sigma_rule, SIGMA_RULES),
            ("gradient", self.gradient, tuple(GRADIENTS)),
            ("answer", self.answer, ANSWERS),
        ):
            if value not in allowed:
                raise ValueError(f"{name}: {value!r} is not one of {', '.join(allowed)}")
        if not 1 <= self.steps <= TRAIN_STEPS:
            raise ValueError(f"steps: {self.steps} is not between 1 and {TRAIN_STEPS}")


@dataclass
class Curves:
    """One value per image for each step, of shape (N,).

    data_norm is ||w (y - A(z))||, primal ||x - z||, dual ||u|| after the step.
    """

    t: list[int] = field(default_factory=list)
    data_norm: list[Tensor] = field(default_factory=list)
    primal: list[Tensor] = field(default_factory=list)
    dual: list[Tensor] = field(default_factory=list)

    def lists(self) -> dict[str, list]:
        """All curves as plain numbers: t per step, the others per step and image."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: [v.tolist() if isinstance(v, Tensor) else v for v in seq] for name, seq in values.items()}


@torch.no_grad()
def solve(
    config: Config,
    prior: Prior,
    measured: Measurement,
    y: Tensor,
    x_T: Tensor,
    noise: Sequence[Tensor],
    curves: Optional[Curves] = None,
) -> Tensor:
    """Restores y from the initial state x_T; noise[k] is the noise of the k-th step.

    Appends the curves to `curves`; computes none if it is None.
    """
    config.validate()
    if len(noise) != config.steps:
        raise ValueError(f"noise: {len(noise)} arrays for {config.steps} steps")
    steps = plan(
        steps=config.steps,
        gamma0=config.gamma0,
        t_gamma=config.t_gamma,
        a=config.a,
        b=config.b,
        t0=config.t0,
        sigma_rule=config.sigma_rule,
        height=x_T.shape[-2],
        width=x_T.shape[-1],
    )
    gradient = GRADIENTS[config.gradient]
    dual = config.method in ("ddiff", "diff_pnp_admm")
    renoise = config.method in ("ddiff", "ddiff_hqs")

    state = x_T
    u = torch.zeros_like(x_T)
    for k, (step, eps) in enumerate(zip(steps, noise)):
        seen = state if renoise else state + u
        if hasattr(prior, "image"):
            z = prior.image(seen, step.t).clamp(-1, 1)
        else:
            z = ((seen - step.noise * prior(seen, step.t)) / step.signal).clamp(-1, 1)
        v = z - u
        x = v - step.gamma * gradient(measured.forward, v, y, measured.weight)
        if renoise:
            eps_hat = (state - step.signal * x) / step.noise
            if k < len(steps) - 1 or config.answer != "x_t":
                state = step.signal_next * (x + u) + step.direction * eps_hat + step.sigma * eps
        else:
            state = x
        if dual:
            u = u + x - z
        if curves is not None:
            curves.t.append(step.t)
            curves.data_norm.append(data_norm(y - measured.forward(z), measured.weight))
            curves.primal.append(data_norm(x - z))
            curves.dual.append(data_norm(u))
    return state

