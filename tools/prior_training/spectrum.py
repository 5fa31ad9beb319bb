"""Measures mean and spectrum of the training crops, the constants of the network's linear part."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ddiff_torch.wiener import BANDS, Wiener

from .pool import Pool


@dataclass(frozen=True)
class Spectrum:
    """The arguments of Wiener: the mean, and values for the bands from fine to coarse."""

    mean: float
    grey: tuple[float, ...]
    chroma: tuple[float, ...]
    white: tuple[float, ...]

    def wiener(self) -> Wiener:
        return Wiener(self.mean, self.grey, self.chroma, self.white)


def measure(pool: Pool, crops: int = 1500, side: int = 128) -> Spectrum:
    """Measures the spectrum on crops of the pool with a fixed seed; rounds to three digits."""
    rng = np.random.default_rng([1, 3])
    bands = Wiener(0.0, *[(1.0,) * BANDS] * 3)
    x = pool.batch(rng, crops, side)
    mean = x.mean()
    grey, chroma = _powers(bands, x - mean)
    noise = torch.from_numpy(rng.standard_normal((200, 3, 64, 64), dtype=np.float32))
    white = sum(_powers(bands, noise)) / 2
    white[-1] = 1  # for one pixel
    spectrum = [float(f"{float(mean):.2g}"), *(_figures(v / white) for v in (grey, chroma))]
    white[-1] = 1 / (64 * 64)
    return Spectrum(*spectrum, _figures(white))


def _powers(bands: Wiener, x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean squares of grey and colour differences in each band, with the opponent axes at unit length."""
    smooth = bands.smooth(x)
    split = [a - b for a, b in zip(smooth, smooth[1:])] + [smooth[-1]]
    power = torch.stack([(b.square() * bands.scale[:, None, None]).mean((0, 2, 3)) for b in split])
    return power[:, 0], power[:, 1:].mean(1)


def _figures(values: Tensor) -> tuple[float, ...]:
    return tuple(float(f"{float(v):.3g}") for v in values)
