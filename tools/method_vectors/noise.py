"""The noise of internal/restore/noise for KEY."""

from __future__ import annotations

import math

import numpy as np
import torch
from scipy.special import ndtri
from torch import Tensor

KEY = (15, 2026, 7)
SIDE = 32  # of the pictures
START, STEP, SHIFT = 2, 3, 20  # of internal/restore/noise and internal/restore/solver


def words(count: int, purpose: int, step: int, key: tuple[int, ...] = KEY) -> np.ndarray:
    """The first words of a stream of a key: Philox4x32-10."""
    low = np.uint64(0xFFFFFFFF)
    blocks = -(-count // 4)
    c = [np.arange(blocks, dtype=np.uint64)] + [np.full(blocks, v, np.uint64) for v in (step, purpose, key[2])]
    k0, k1 = key[:2]
    for _ in range(10):
        p0, p1 = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(p1 >> np.uint64(32)) ^ c[1] ^ np.uint64(k0), p1 & low, (p0 >> np.uint64(32)) ^ c[3] ^ np.uint64(k1), p0 & low]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack(c, 1).reshape(-1)[:count]


def normal(shape: tuple[int, ...], purpose: int, step: int, key: tuple[int, ...] = KEY, std: float = 1) -> Tensor:
    """Independent N(0, std^2) numbers of a stream of a key."""
    w = words(math.prod(shape), purpose, step, key)
    tail = (2 * (w & np.uint64(0x7FFFFFFF)).astype(np.float64) + 1) / 2**33
    z = -ndtri(tail) * np.where(w >> np.uint64(31), -1, 1) * std
    return torch.from_numpy(z.astype(np.float32)).reshape(shape)


def draw(position: int, time: int, iteration: int = 0) -> Tensor:
    """The noise of one step: position is that of the draw in the method's declaration."""
    return normal((1, 3, SIDE, SIDE), STEP | iteration << 8, position << SHIFT | time)
