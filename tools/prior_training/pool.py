"""The pool of training pictures, and random crops of them."""

from __future__ import annotations

import multiprocessing
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from . import pages, photographs
from .leaves import dead_leaves


class Pool:
    """Pictures by source. A crop comes from a page of text with probability `page_share`, else from a photograph with `photo_share`.

    A share `dark` of all crops is darkened to a tenth up to six tenths. Photographs have equal probabilities; the probability of a version of a photograph is
    proportional to the root of its area.
    """

    def __init__(
        self, photos: list[list[np.ndarray]], leaves: np.ndarray, photo_share: float, pages: np.ndarray | None = None,
        page_share: float = 0, dark: float = 0,
    ) -> None:  # fmt: skip
        self.photos, self.leaves, self.pages = photos, leaves, pages
        self.page_share, self.dark = page_share, dark
        self.photo_share = photo_share if photos else 0.0
        self.weights = []
        for scales in photos:
            areas = np.array([v.shape[0] * v.shape[1] for v in scales], dtype=np.float64) ** 0.5
            self.weights.append(areas / areas.sum())

    def batch(self, rng: np.random.Generator, count: int, side: int) -> np.ndarray:
        """Random crops, float32 [count, 3, side, side] in -1..1, randomly flipped, rotated and recoloured."""
        return np.stack([self._crop(rng, side) for _ in range(count)])

    def _crop(self, rng: np.random.Generator, side: int) -> np.ndarray:
        page = self.page_share > 0 and rng.random() < self.page_share
        if page:
            picture = self.pages[rng.integers(len(self.pages))]
        elif rng.random() < self.photo_share:
            which = rng.integers(len(self.photos))
            picture = self.photos[which][rng.choice(len(self.weights[which]), p=self.weights[which])]
        else:
            picture = self.leaves[rng.integers(len(self.leaves))]
        y = rng.integers(picture.shape[0] - side + 1)
        x = rng.integers(picture.shape[1] - side + 1)
        crop = picture[y : y + side, x : x + side].astype(np.float32) / 255
        if page:  # never mirrored, mostly upright, half of them with the colours of the page
            crop = np.rot90(crop, rng.integers(4) * (rng.random() < 0.4))
            crop = recolour(rng, crop) if rng.random() < 0.5 else crop
        else:
            if rng.random() < 0.5:
                crop = crop[:, ::-1]
            crop = recolour(rng, np.rot90(crop, rng.integers(4)))
        if self.dark > 0 and rng.random() < self.dark:
            crop = crop * np.float32(rng.uniform(0.1, 0.6))
        return crop.transpose(2, 0, 1) * 2 - 1


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


def _page(job: tuple[int, int, list[Path]]) -> np.ndarray:
    seed, index, fonts = job
    return pages.page(np.random.default_rng([seed, 3, index]), fonts)


def _photograph(job: tuple[photographs.Photograph, Path]) -> list[np.ndarray]:
    return photographs.versions(photographs.read(*job))


def build(
    folder: Path | None, leaves: int, seed: int, photo_share: float, cache: Path | None = None, page_share: float = 0, dark: float = 0,
    wanted: Sequence[photographs.Photograph] = photographs.PHOTOGRAPHS,
) -> Pool:  # fmt: skip
    """Reads the photographs in folder (None: no photographs) and draws the procedural pictures, and 400 pages if they have a share.

    A cache file stores the procedural pictures for the next start.
    """
    with multiprocessing.Pool() as workers:
        photos = workers.map(_photograph, [(p, folder) for p in wanted], chunksize=1) if folder else []
        if cache and cache.is_file():
            drawn = np.load(cache)
            if len(drawn) != leaves:
                raise ValueError(f"pool: {cache} holds {len(drawn)} pictures, not {leaves}; remove it")
        else:
            drawn = np.stack(workers.map(_leaf, [(seed, i, 256) for i in range(leaves)], chunksize=4))
            if cache:
                np.save(cache, drawn)
        text = None
        if page_share > 0:
            fonts = pages.fonts()
            text = np.stack(workers.map(_page, [(seed, i, fonts) for i in range(400)], chunksize=4))
    return Pool(photos, drawn, photo_share, text, page_share, dark)
