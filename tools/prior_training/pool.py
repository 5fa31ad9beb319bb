"""The pool of training pictures on the device, and random crops of them."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from . import pages, photographs
from .leaves import dead_leaves

PAGES = 400


class Pool:
    """Pictures by source, uint8 [height, width, 3]. A crop comes from a page of text with probability `page_share`, else from a photograph with
    `photo_share`, else from a procedural picture.

    A share `dark` of all crops is darkened to a tenth up to six tenths. The probability of a photograph, at one of its scales, is proportional to the root
    of its area; pages and procedural pictures have equal probabilities.
    """

    def __init__(
        self, photos: list[np.ndarray], leaves: np.ndarray, photo_share: float, pages: np.ndarray | None = None,
        page_share: float = 0, dark: float = 0, device: str = "cpu",
    ) -> None:  # fmt: skip
        self.page_share, self.dark, self.device = page_share, dark, device
        self.photo_share = photo_share if photos else 0.0
        pictures = [*photos, *leaves, *([] if pages is None else pages)]
        self.sizes = np.array([p.shape[:2] for p in pictures], dtype=np.int64).reshape(-1, 2)
        areas = self.sizes.prod(axis=1)
        self.starts = np.cumsum(areas) - areas
        self.counts = len(photos), len(leaves), len(pictures) - len(photos) - len(leaves)
        root = areas[: len(photos)] ** 0.5
        self.weights = root / root.sum()
        self.pixels = torch.from_numpy(np.concatenate([p.reshape(-1, 3) for p in pictures] or [np.empty((0, 3), np.uint8)])).to(device)

    def batch(self, rng: np.random.Generator, count: int, side: int) -> Tensor:
        """Random crops, float32 [count, 3, side, side] in -1..1 on the device, randomly flipped, rotated and recoloured."""
        photos, leaves, text = self.counts
        page = rng.random(count) < self.page_share
        photo = ~page & (rng.random(count) < self.photo_share)
        which = photos + rng.integers(leaves, size=count) if leaves else np.zeros(count, np.int64)
        if photos:
            which = np.where(photo, rng.choice(photos, size=count, p=self.weights), which)
        if text:
            which = np.where(page, photos + leaves + rng.integers(text, size=count), which)
        # A page is never mirrored and mostly upright; half of the pages keep their colours.
        turns = rng.integers(4, size=count) * (~page | (rng.random(count) < 0.4))
        mirrored = ~page & (rng.random(count) < 0.5)
        kept = page & (rng.random(count) < 0.5)
        dark = np.where(rng.random(count) < self.dark, rng.uniform(0.1, 0.6, count), 1)
        corner = np.floor(rng.random((count, 2)) * (self.sizes[which] - side + 1)).astype(np.int64)
        whole = np.stack([self.starts[which], self.sizes[which, 1], *corner.T, turns % 2, turns // 2, mirrored])
        colours = np.column_stack([recolouring(rng, count), kept, dark]).astype(np.float32)
        start, width, y, x, quarter, half, mirror = torch.from_numpy(whole).to(self.device)[:, :, None, None]
        colours = torch.from_numpy(colours).to(self.device)

        across = torch.arange(side, device=self.device)
        row, column = across[None, :, None], across[None, None, :]
        row, column = torch.where(quarter > 0, column, row), torch.where(quarter > 0, side - 1 - row, column)
        row, column = (torch.where(half > 0, side - 1 - i, i) for i in (row, column))
        column = torch.where(mirror > 0, side - 1 - column, column)
        crops = self.pixels[start + (y + row) * width + x + column].permute(0, 3, 1, 2).contiguous().float() / 255
        kept, dark = colours[:, -2, None, None, None], colours[:, -1, None, None, None]
        return torch.where(kept > 0, crops, recolour(crops, colours)) * dark * 2 - 1


def recolouring(rng: np.random.Generator, count: int) -> np.ndarray:
    """Random changes of saturation, brightness, white balance and gamma: [count, 5], for recolour."""
    gain = np.exp(rng.normal(0, 0.15, (count, 1)) + rng.normal(0, 0.06, (count, 3)))
    gamma = np.where(rng.random(count) < 0.5, np.exp(rng.normal(0, 0.25, count)), 1)
    return np.column_stack([rng.uniform(0.3, 1.3, count), gain, gamma])


def recolour(crops: Tensor, changes: Tensor) -> Tensor:
    """Changes crops [count, 3, height, width]; they and the result are in 0..1."""
    grey = crops.mean(dim=1, keepdim=True)
    out = grey + (crops - grey) * changes[:, 0, None, None, None]
    return (out * changes[:, 1:4, None, None]).clamp(0, 1) ** changes[:, 4, None, None, None]


def _leaf(job: tuple[int, int, int]) -> np.ndarray:
    seed, index, size = job
    return dead_leaves(np.random.default_rng([seed, 1, index]), size)


def _page(job: tuple[int, int, list[Path]]) -> np.ndarray:
    seed, index, fonts = job
    return pages.page(np.random.default_rng([seed, 3, index]), fonts)


def _versions(decode: Callable[[], Image.Image]) -> list[np.ndarray]:
    return photographs.versions(decode())


def start(
    photos: list[Callable[[], Image.Image]], leaves: int, seed: int, photo_share: float, cache: Path | None = None, page_share: float = 0,
    dark: float = 0, fonts: Path = pages.FONTS,
) -> Callable[[str], Pool]:  # fmt: skip
    """Starts processes that read the photographs and draw the procedural pictures, and 400 pages if they have a share.

    The result waits for them and puts the pool on a device. A cache file stores the procedural pictures for the next start.
    """
    files = pages.fonts(fonts) if page_share > 0 else []
    drawn = np.load(cache) if cache and cache.is_file() else None
    if drawn is not None and len(drawn) != leaves:
        raise ValueError(f"pool: {cache} holds {len(drawn)} pictures, not {leaves}; remove it")
    # Forked before PyTorch starts threads or the GPU; a lower priority than the compiler of the network, which runs meanwhile.
    workers = concurrent.futures.ProcessPoolExecutor(mp_context=multiprocessing.get_context("fork"), initializer=os.nice, initargs=(5,))
    read = [workers.submit(_versions, p) for p in photos]
    text = [workers.submit(_page, (seed, i, files)) for i in range(PAGES * (page_share > 0))]
    draw = [workers.submit(_leaf, (seed, i, 256)) for i in range(leaves * (drawn is None))]

    def finish(device: str = "cpu") -> Pool:
        try:
            pictures = [v for versions in read for v in versions.result()]
            texts = np.stack([p.result() for p in text]) if text else None
            procedural = np.stack([p.result() for p in draw]) if drawn is None else drawn
        except concurrent.futures.process.BrokenProcessPool as err:
            raise ValueError("pool: a process that draws the pictures died; is there enough memory?") from err
        finally:
            workers.shutdown(cancel_futures=True)
        if cache and drawn is None:
            np.save(cache, procedural)
        return Pool(pictures, procedural, photo_share, texts, page_share, dark, device)

    return finish
