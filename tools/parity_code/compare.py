"""PSNR of both results against the truth, and the difference of the pictures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

LIMIT = 0.05  # dB
HEAD = f"{'task':18}{'photograph':20}{'theirs':>8}{'ours':>8}{'dB':>9}{'mean':>7}{'max':>5}"
NOTE = "theirs, ours: PSNR in dB against the truth; mean, max: difference of the 8-bit pictures in levels"


@dataclass(frozen=True)
class Row:
    """A task and a photograph."""

    task: str
    photograph: str
    theirs: float  # PSNR in dB
    ours: float
    mean: float  # mean absolute difference of the 8-bit pictures, in levels
    most: int  # largest one

    def difference(self) -> float:
        return self.ours - self.theirs

    def __str__(self) -> str:
        return (
            f"{self.task:18}{self.photograph:20}{self.theirs:8.3f}{self.ours:8.3f}{self.difference():+9.4f}{self.mean:7.3f}{self.most:5d}"
        )


def psnr(x: Tensor, truth: Tensor) -> float:
    """PSNR as ddiff computes it: both clipped to [-1, 1] and mapped to [0, 1]."""
    error = (x.double().clamp(-1, 1) - truth.double()) / 2
    return -10 * math.log10(float(error.square().mean()) + 1e-8)


def pixels(x: Tensor) -> np.ndarray:
    """An image [1, 3, height, width] as an 8-bit picture [height, width, 3]."""
    return ((x[0].clamp(-1, 1) + 1) * 127.5).round().byte().permute(1, 2, 0).numpy()


def row(task: str, photograph: str, theirs: Tensor, truth: Tensor, ours: float, picture: np.ndarray) -> Row:
    """Compares their state with our PSNR and our picture."""
    d = np.abs(pixels(theirs).astype(int) - picture.astype(int))
    return Row(task, photograph, psnr(theirs, truth), ours, float(d.mean()), int(d.max()))


def summary(rows: Sequence[Row], expected: int) -> tuple[str, bool]:
    """The last line, and whether all of the expected rows are there and none differs by more than LIMIT."""
    worst = max((abs(r.difference()) for r in rows), default=math.nan)
    worst = math.nan if any(math.isnan(r.difference()) for r in rows) else worst
    return f"tasks={len({r.task for r in rows})} max_db={worst:.2f}", len(rows) == expected and worst <= LIMIT
