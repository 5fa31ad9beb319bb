#!/usr/bin/env python3
"""Compares restored photographs with classical methods.

    python3 tools/classical_methods.py DIR

Each folder NAME.TASK of DIR has truth.png, the degraded picture input.png, photo.png or photo.jpg, output.png or photo.restored.png and, for some tasks, mask.npy or
kernel.npy, and restoration.json with sigma on [-1, 1], the parameters of the task or the name of the classical method, and whether the program said something about the
picture. `make restore-photographs` writes them. The table has the PSNR to the truth of the input, of the restored picture and of a classical method:

- denoise: BM3D with the true noise level;
- super_resolution: the bicubic enlargement, which is also the input;
- gaussian_deblur, motion_deblur: Wiener deconvolution with the true kernel, the best by PSNR to the truth of a grid of noise-to-signal ratios;
- inpaint_*: diffusion: the lost pixels solve Laplace's equation;
- jpeg, and noise that is not white: BM3D with the best noise level of a grid;
- dead pixels: the same after a median filter.

The choices by the truth favour the classical method.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from PIL import Image

MISSING = "BM3D missing"
UNSAID = 0.5  # a loss in dB that the program has to say
Denoiser = Callable[[np.ndarray, float], np.ndarray]  # noisy picture [H, W, 3] and noise level on [0, 1]


def read(path: Path) -> np.ndarray:
    """A picture as [H, W, 3] on [0, 1]."""
    return np.asarray(Image.open(path).convert("RGB"), dtype=np.float64) / 255


def psnr(x: np.ndarray, truth: np.ndarray) -> float:
    """PSNR in dB; x is clipped and has 8 bits, as a file."""
    x = np.round(np.clip(x, 0, 1) * 255) / 255
    return float(-10 * np.log10(max(np.mean((x - truth) ** 2), 1e-12)))


def bm3d_denoiser() -> Denoiser | None:
    """CBM3D of the package bm3d, or None if it is not installed."""
    try:
        import bm3d
    except ImportError:
        return None
    return lambda y, sigma: bm3d.bm3d_rgb(y, sigma)


def best(pictures: Iterable[np.ndarray], truth: np.ndarray) -> np.ndarray:
    """The picture with the highest PSNR."""
    return max(pictures, key=lambda x: psnr(x, truth))


def bicubic(y: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """The enlargement of y to the size of truth."""
    height, width = truth.shape[:2]
    planes = [Image.fromarray(y[..., c].astype(np.float32)).resize((width, height), Image.Resampling.BICUBIC) for c in range(3)]
    return np.stack([np.asarray(p, dtype=np.float64) for p in planes], axis=-1)


def gaussian(std: float) -> np.ndarray:
    """A Gaussian kernel that ends at four standard deviations."""
    radius = int(4 * std + 0.5)
    taps = np.exp(-np.arange(-radius, radius + 1) ** 2 / (2 * std**2))
    return np.outer(taps, taps) / taps.sum() ** 2


def wiener(y: np.ndarray, kernel: np.ndarray) -> Iterable[np.ndarray]:
    """Wiener deconvolutions of y, a correlation with the kernel under a reflecting border, for noise-to-signal ratios r and r f^2."""
    height, width = y.shape[:2]
    extended = np.pad(y, ((0, height - 2), (0, width - 2), (0, 0)), mode="reflect")
    centred = np.zeros(extended.shape[:2])
    size = kernel.shape[0]
    centred[:size, :size] = kernel
    centred = np.roll(centred, (-(size // 2), -(size // 2)), axis=(0, 1))
    transfer = np.conj(np.fft.fft2(centred))[..., None]
    spectrum = np.fft.fft2(extended, axes=(0, 1))
    f2 = (np.fft.fftfreq(extended.shape[0])[:, None] ** 2 + np.fft.fftfreq(extended.shape[1]) ** 2)[..., None]
    for slope in (np.ones_like(f2), f2):
        for ratio in 10 ** np.arange(-4, 2.1, 0.25):
            x = np.fft.ifft2(np.conj(transfer) * spectrum / (np.abs(transfer) ** 2 + ratio * slope + 1e-12), axes=(0, 1)).real
            yield x[:height, :width]


def median(y: np.ndarray) -> np.ndarray:
    """The median of 3 x 3 pixels."""
    p = np.pad(y, ((1, 1), (1, 1), (0, 0)), mode="edge")
    height, width = y.shape[:2]
    return np.median([p[i : i + height, k : k + width] for i in range(3) for k in range(3)], axis=0)


def diffuse(y: np.ndarray, mask: np.ndarray, rounds: int = 6000) -> np.ndarray:
    """Replaces the pixels where mask is 0 by the solution of Laplace's equation with a reflecting border (Jacobi iterations)."""
    lost = mask < 0.5
    x = y.copy()
    x[lost] = y[~lost].mean(axis=0)
    for _ in range(rounds):
        p = np.pad(x, ((1, 1), (1, 1), (0, 0)), mode="edge")
        mean = (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]) / 4
        x[lost] = mean[lost]
    return x


def classical(folder: Path, task: str, y: np.ndarray, truth: np.ndarray, bm3d: Denoiser | None) -> tuple[str, np.ndarray | None]:
    """The name and the result of the classical method for a task; None without BM3D."""
    facts = json.loads((folder / "restoration.json").read_text())
    method = facts.get("classical")
    if method in ("wiener", "median_wiener"):
        filtered = y if method == "wiener" else median(y)
        return "Wiener, best", best(wiener(filtered, np.load(folder / "kernel.npy").astype(np.float64)), truth)
    if method == "bm3d_best" and bm3d is not None:
        return "BM3D, best", best((bm3d(y, s * facts["sigma"] / 2 if facts["sigma"] else 8 * s / 255) for s in (0.5, 1, 2)), truth)
    if task.startswith("super_resolution"):
        return "bicubic", bicubic(y, truth)
    if task == "gaussian_deblur":
        std = facts["params"]["std"] * min(truth.shape[:2]) / 256
        return "Wiener, best", best(wiener(y, gaussian(std)), truth)
    if task == "motion_deblur":
        return "Wiener, best", best(wiener(y, np.load(folder / "kernel.npy").astype(np.float64)), truth)
    if task.startswith("inpaint"):
        return "diffusion", diffuse(y, np.load(folder / "mask.npy"))
    if bm3d is None:
        return MISSING, None
    if task == "denoise":
        return "BM3D", bm3d(y, facts["sigma"] / 2)
    if task == "jpeg":
        return "BM3D, best", best((bm3d(y, s / 255) for s in (2, 4, 6, 8, 11, 15, 20)), truth)
    raise ValueError(f"classical_methods: no classical method for task {task}")


def restored(folder: Path) -> Path:
    """The restored picture of a folder."""
    own = folder / "output.png"
    return own if own.exists() else folder / "photo.restored.png"


def said(folder: Path) -> bool:
    """Whether the program said something about a picture."""
    return json.loads((folder / "restoration.json").read_text()).get("said", False)


def row(folder: Path, bm3d: Denoiser | None) -> list[str]:
    """The line of the table for a photograph."""
    name, _, task = folder.name.partition(".")
    truth = read(folder / "truth.png")
    y = read(next(p for p in (folder / "input.png", folder / "photo.png", folder / "photo.jpg") if p.exists()))
    method, x = classical(folder, task, y, truth, bm3d)
    source = y if y.shape == truth.shape else bicubic(y, truth)
    figures = [psnr(source, truth), psnr(read(restored(folder)), truth)]
    facts = json.loads((folder / "restoration.json").read_text())
    return [name, f"`{task}`", facts["degradation"], *(f"{v:.2f}" for v in figures), "" if x is None else f"{psnr(x, truth):.2f}", method]


def main(argv: list[str] | None = None) -> int:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("folder", type=Path)
    p.add_argument("--no-bm3d", action="store_true", help="leave BM3D out")
    args = p.parse_args(argv)
    folders = []
    needed = ("truth.png", "photo.restored.png", "restoration.json")
    for folder in sorted({file.parent for name in (*needed, "output.png") for file in args.folder.glob(f"*/{name}")}):
        missing = [name for name in needed if not (folder / name).exists() and not (name == "photo.restored.png" and restored(folder).exists())]
        if not missing:
            folders.append(folder)
        elif missing == ["truth.png"]:
            print(f"classical_methods: {folder} has no truth.png; its line is missing", file=sys.stderr)
        else:
            print(f"classical_methods: {folder} has no restored photograph; its line is missing", file=sys.stderr)
    if not folders:
        print(f"classical_methods: no restored photograph in {args.folder}", file=sys.stderr)
        return 2
    denoiser = None if args.no_bm3d else bm3d_denoiser()
    if denoiser is None:
        print("classical_methods: BM3D is not installed; its figures are missing", file=sys.stderr)
    head = ["photograph", "task", "degradation", "input, PSNR", "restored, PSNR", "classical, PSNR", "method"]
    rows = [row(folder, denoiser) for folder in folders]
    print("\n".join(f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *rows]))
    ahead = sum(1 for r in rows if r[5] and float(r[4]) > float(r[5]))
    gains = [float(r[4]) - float(r[3]) for r in rows]
    unexplained = sum(1 for gain, folder in zip(gains, folders, strict=True) if gain < -UNSAID and not said(folder))
    print(
        f"photographs={len(rows)} better_than_input={sum(1 for gain in gains if gain > 0)} better_than_classical={ahead} compared={sum(1 for r in rows if r[5])} "
        f"worst_db={min(gains):.2f} unexplained={unexplained}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
