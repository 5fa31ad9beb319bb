"""The pool of training pictures, and random crops of them."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import numpy as np

from . import photographs
from .leaves import dead_leaves


class Pool:
    """Pictures by source. A crop comes from a photograph with probability `photo_share`.

    Photographs have equal probabilities; the probability of a version of a photograph is
    proportional to the root of its area.
    """

    def __init__(self, photos: list[list[np.ndarray]], leaves: np.ndarray, photo_share: float) -> None:
        self.photos, self.leaves = photos, leaves
        self.photo_share = photo_share if photos else 0.0
        self.weights = []
        for scales in photos:
            areas = np.array([v.shape[0] * v.shape[1] for v in scales], dtype=np.float64) ** 0.5
            self.weights.append(areas / areas.sum())

    def batch(self, rng: np.random.Generator, count: int, side: int) -> np.ndarray:
        """Random crops, float32 [count, 3, side, side] in -1..1, randomly flipped, rotated and recoloured."""
        return np.stack([self._crop(rng, side) for _ in range(count)])

    def _crop(self, rng: np.random.Generator, side: int) -> np.ndarray:
        if rng.random() < self.photo_share:
            which = rng.integers(len(self.photos))
            picture = self.photos[which][rng.choice(len(self.weights[which]), p=self.weights[which])]
        else:
            picture = self.leaves[rng.integers(len(self.leaves))]
        y = rng.integers(picture.shape[0] - side + 1)
        x = rng.integers(picture.shape[1] - side + 1)
        crop = picture[y : y + side, x : x + side].astype(np.float32) / 255
        if rng.random() < 0.5:
            crop = crop[:, ::-1]
        crop = np.rot90(crop, rng.integers(4))
        return recolour(rng, crop).transpose(2, 0, 1) * 2 - 1


def recolour(rng: np.random.Generator, crop: np.ndarray) -> np.ndarray:
    """Changes saturation, gamma, brightness and white balance at random; input and result are in 0..1."""
    grey = crop.mean(axis=2, keepdims=True)
    out = grey + (crop - grey) * rng.uniform(0.3, 1.3)
    gain = np.exp(rng.normal(0, 0.15) + rng.normal(0, 0.06, 3)).astype(np.float32)
    out = np.clip(out * gain, 0, 1)
    if rng.random() < 0.5:
        out = out ** np.float32(np.exp(rng.normal(0, 0.25)))
    return out


def _leaf(job: tuple[int, int, int]) -> np.ndarray:
    seed, index, size = job
    return dead_leaves(np.random.default_rng([seed, 1, index]), size)


def build(folder: Path | None, leaves: int, seed: int, photo_share: float, cache: Path | None = None) -> Pool:
    """Reads the photographs in folder (None: no photographs) and draws the procedural pictures.

    A cache file stores the procedural pictures for the next start.
    """
    photos = [photographs.versions(photographs.read(p, folder)) for p in photographs.PHOTOGRAPHS] if folder else []
    if cache and cache.is_file():
        drawn = np.load(cache)
        if len(drawn) != leaves:
            raise ValueError(f"pool: {cache} holds {len(drawn)} pictures, not {leaves}; remove it")
    else:
        with multiprocessing.Pool() as workers:
            drawn = np.stack(workers.map(_leaf, [(seed, i, 256) for i in range(leaves)], chunksize=4))
        if cache:
            np.save(cache, drawn)
    return Pool(photos, drawn, photo_share)
