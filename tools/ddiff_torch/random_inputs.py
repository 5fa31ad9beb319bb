"""Random test inputs: images, masks and blur kernels, as numpy float32.

They differ from the draws of the Go program; tests pass these arrays as files.
"""

from __future__ import annotations

import math

import numpy as np

# Inputs are multiples of GRAIN: exact in float32, and small when git packs them.
GRAIN = 1 / 128


def picture(rng: np.random.Generator, images: int, height: int, width: int) -> np.ndarray:
    """Smooth waves, texture and an edge, (images, 3, height, width) in [-1, 1]."""
    row, col = np.mgrid[0:height, 0:width] / min(height, width)
    out = np.empty((images, 3, height, width))
    for plane in out.reshape(-1, height, width):
        waves = sum(
            rng.uniform(0.1, 0.5) * np.cos(2 * np.pi * (rng.uniform(-2, 2) * row + rng.uniform(-2, 2) * col) + phase)
            for phase in rng.uniform(0, 2 * np.pi, 3)
        )
        edge = 0.4 * np.sign(row + rng.uniform(-1, 1) * col - rng.uniform(0.3, 0.9))
        plane[:] = 0.8 * waves + edge + 0.15 * rng.standard_normal((height, width))
    return grained(np.clip(out, -1, 1))


def grained(values: np.ndarray) -> np.ndarray:
    """Rounds to multiples of GRAIN; float32."""
    return (np.round(values / GRAIN) * GRAIN).astype(np.float32)


def path_kernel(rng: np.random.Generator, size: int) -> np.ndarray:
    """A blur kernel (1, size, size) along a random path: sparse, >= 0, sum 1, not symmetric."""
    kernel = np.zeros((size, size))
    position, heading = np.full(2, size // 2, dtype=float), rng.uniform(0, 2 * np.pi)
    for _ in range(2 * size):
        r, c = np.clip(np.round(position), 0, size - 1).astype(int)
        kernel[r, c] += rng.uniform(0.5, 1.5)
        heading += rng.normal(0, 0.4)
        position = np.clip(position + 0.5 * np.array([math.sin(heading), math.cos(heading)]), 0, size - 1)
    return (kernel / kernel.sum())[None].astype(np.float32)


def box_mask(rng: np.random.Generator, height: int, width: int) -> np.ndarray:
    """A mask (1, height, width) with a hole of half the sides, at least 1/16 of a side from the border."""
    mask = np.ones((1, height, width), np.float32)
    h, w = height // 2, width // 2
    top = rng.integers(height // 16, height - h - height // 16 + 1)
    left = rng.integers(width // 16, width - w - width // 16 + 1)
    mask[:, top : top + h, left : left + w] = 0
    return mask


def random_mask(rng: np.random.Generator, height: int, width: int) -> np.ndarray:
    """A mask (1, height, width) that keeps 30 % of the pixels."""
    mask = np.zeros(height * width, np.float32)
    mask[rng.permutation(height * width)[: round(0.3 * height * width)]] = 1
    return mask.reshape(1, height, width)
