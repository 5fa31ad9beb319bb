"""Noise schedule and the scalars of every solver step, in float64.

    beta linear from 1e-4 to 0.02 over T = 1000 steps, abar_t = prod_{i<=t} (1 - beta_i)
    t_i = round_half_even(i (T-1)/(n-1)), i = 0..n-1, visited from the last to the first
    s = the next t of the list; abar_s = 1 after the last
    sigma_t = sqrt((1-abar_s)/(1-abar_t)) sqrt(1 - abar_t/abar_s)     rule "ddpm"
            = sqrt(1 - abar_s)                                        rule "full"
    gamma_t = gamma0 * sqrt(H W)/256 * (a if t > t_gamma else b)
    x_s     = signal_s x0 + direction eps_hat + sigma eps,  direction = sqrt(1 - abar_s - sigma_t^2)

The noise eps is omitted when t <= t0; sigma_t^2 stays under the root in either case.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

TRAIN_STEPS = 1000
SIGMA_RULES = ("ddpm", "full")


@dataclass(frozen=True)
class Step:
    """The scalars of one step from t to the next s."""

    t: int  # index into the training schedule, the time at which the prior is evaluated
    signal: float  # sqrt(abar_t)
    noise: float  # sqrt(1 - abar_t)
    signal_next: float  # sqrt(abar_s)
    direction: float  # sqrt(1 - abar_s - sigma_t^2), the weight of eps_hat
    sigma: float  # the weight of new noise: sigma_t, or 0 when t <= t0
    gamma: float  # step size of the data term


def alpha_bar(train_steps: int = TRAIN_STEPS) -> np.ndarray:
    """abar_t for t = 0 .. train_steps-1."""
    return np.cumprod(1.0 - np.linspace(1e-4, 0.02, train_steps))


def respaced(steps: int, train_steps: int = TRAIN_STEPS) -> list[int]:
    """The visited indices, descending. A single step starts and ends at train_steps-1."""
    if not 1 <= steps <= train_steps:
        raise ValueError(f"steps: {steps} is not between 1 and {train_steps}")
    if steps == 1:
        return [train_steps - 1]
    return [round(i * (train_steps - 1) / (steps - 1)) for i in reversed(range(steps))]


def sigma(rule: str, abar_t: float, abar_s: float) -> float:
    """sigma_t of the step from abar_t to abar_s."""
    if rule == "ddpm":
        return math.sqrt((1 - abar_s) / (1 - abar_t)) * math.sqrt(1 - abar_t / abar_s)
    if rule == "full":
        return math.sqrt(1 - abar_s)
    raise ValueError(f"sigma_rule: {rule!r} is not one of {', '.join(SIGMA_RULES)}")


def gamma(t: int, gamma0: float, t_gamma: int, a: float, b: float, height: int, width: int) -> float:
    """Step size at t for images of height x width; gamma0 is stated for 256x256."""
    return gamma0 * math.sqrt(height * width) / 256 * (a if t > t_gamma else b)


def plan(
    *,
    steps: int,
    gamma0: float,
    t_gamma: int,
    a: float,
    b: float,
    t0: int,
    sigma_rule: str,
    height: int,
    width: int,
) -> list[Step]:
    """All steps, in order of execution."""
    abar = alpha_bar()
    visited = respaced(steps)
    result = []
    for t, s in zip(visited, [*visited[1:], None]):
        abar_t = float(abar[t])
        abar_s = 1.0 if s is None else float(abar[s])
        sigma_t = sigma(sigma_rule, abar_t, abar_s)
        result.append(
            Step(
                t=t,
                signal=math.sqrt(abar_t),
                noise=math.sqrt(1 - abar_t),
                signal_next=math.sqrt(abar_s),
                # With the rule "full", rounding can make the difference slightly negative.
                direction=math.sqrt(max(0.0, 1 - abar_s - sigma_t**2)),
                sigma=sigma_t if t > t0 else 0.0,
                gamma=gamma(t, gamma0, t_gamma, a, b, height, width),
            )
        )
    return result
