"""A prior from a denoiser with known noise levels.

By Tweedie's formula the score of p(x + sigma n) is (D(x, sigma) - x)/sigma^2, so that with
x_t = sqrt(abar) x + sqrt(1 - abar) n and s = sqrt((1 - abar)/abar)

    z = D(x_t/sqrt(abar), s),   eps = (x_t - sqrt(abar) z)/sqrt(1 - abar)

The level s runs from 0.01 at t = 0 to 157 at t = 999, for images in [-1, 1]. Levels outside
the denoiser's range are replaced by the nearest level inside.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn

from .errors import ExportError

STEPS = 1000
SCHEDULE = "linear:1e-4:0.02:1000"

# Image scales of denoisers: a value in [-1, 1] times gain, plus offset.
RANGES = {"-1..1": (1.0, 0.0), "0..1": (0.5, 0.5), "0..255": (127.5, 127.5)}


def alpha_bar() -> np.ndarray:
    """The cumulative products of 1 - beta over the linear schedule."""
    return np.cumprod(1 - np.linspace(1e-4, 0.02, STEPS))


def level(t: int) -> float:
    """Noise level of x_t/sqrt(abar), for images in [-1, 1]."""
    a = alpha_bar()[t]
    return math.sqrt((1 - a) / a)


def covered(lo: float, hi: float) -> tuple[int, int] | None:
    """The first and the last t whose level is in [lo, hi], for images in [-1, 1]."""
    inside = [t for t in range(STEPS) if lo <= level(t) <= hi]
    return (inside[0], inside[-1]) if inside else None


def described(lo: float, hi: float) -> str:
    """The card's description of the levels."""
    within = covered(lo, hi)
    where = f"t {within[0]}..{within[1]}" if within else "no t"
    return f"a denoiser of noise {lo:.4g}..{hi:.4g} (images in -1..1) as a prior by Tweedie's formula: trained for {where}, elsewhere asked for the nearest level"


class Tables(nn.Module):
    """sqrt(abar), sqrt(1 - abar) and the denoiser's noise level, by t."""

    def __init__(self, lo: float, hi: float) -> None:
        super().__init__()
        if not 0 <= lo < hi:
            raise ExportError(f"--sigma: {lo:g},{hi:g} is not a range of noise levels; want 0 <= LO < HI")
        a = torch.from_numpy(alpha_bar())
        self.register_buffer("signal", a.sqrt().float())
        self.register_buffer("noise", (1 - a).sqrt().float())
        self.register_buffer("level", ((1 - a) / a).sqrt().clamp(lo, hi).float())


class Prior(nn.Module):
    """eps(x_t, t) from a module D(x, sigma). Its images and sigma [N] have a scale of RANGES;
    lo and hi are its levels for images in [-1, 1]."""

    def __init__(self, denoiser: nn.Module, lo: float, hi: float, scale: str = "-1..1") -> None:
        super().__init__()
        self.denoiser, self.tables = denoiser, Tables(lo, hi)
        self.gain, self.offset = RANGES[scale]

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        signal, noise = (table[t][:, None, None, None] for table in (self.tables.signal, self.tables.noise))
        asked = self.tables.level[t] * self.gain
        z = self.denoiser((x / signal) * self.gain + self.offset, asked)
        return (x - signal * ((z - self.offset) / self.gain)) / noise
