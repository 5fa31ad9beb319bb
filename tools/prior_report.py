#!/usr/bin/env python3
"""Measures a prior: denoising in comparison with other priors and BM3D, samples, and the tasks.

    python3 tools/prior_report.py --prior internal/restore/prior/bundled/prior.onnx [--beside NAME=FILE]...

Denoising: y = x + s n with s = sigma/127.5 on [-1, 1]; the prior is evaluated once, at the t with
sqrt((1-abar)/abar) nearest to s:

    x_t = sqrt(abar_t) y,   z = (x_t - sqrt(1-abar_t) eps(x_t, t)) / sqrt(abar_t), clipped to [-1, 1]

PSNR is computed for clipped images on [0, 1] and averaged over a folder. All methods get the same
noise. Scripts can read the last line: the first prior and BM3D on the first folder.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parent))

from ddiff_torch.onnx_prior import load  # noqa: E402
from ddiff_torch.schedule import alpha_bar  # noqa: E402

REPO = Path(__file__).resolve().parents[1]
BM3D_MISSING = "prior_report: BM3D is not installed; install it with: python3 -m pip install bm3d (or leave it out with --no-bm3d)"

Network = Callable[[Tensor, Tensor], Tensor]  # x_t [N, 3, H, W] and t [N] to an estimate of eps
Denoiser = Callable[[np.ndarray, float], np.ndarray]  # noisy y [H, W, 3] on [0, 1] and sigma on the scale 0..255


def network_denoiser(network: Network) -> Denoiser:
    """A denoiser: the prior's estimate of the clean image from one evaluation."""
    abar = alpha_bar()
    levels = np.sqrt((1 - abar) / abar)

    @torch.no_grad()
    def denoise(y: np.ndarray, sigma: float) -> np.ndarray:
        t = int(np.argmin(np.abs(levels - sigma / 127.5)))
        signal, noise = float(np.sqrt(abar[t])), float(np.sqrt(1 - abar[t]))
        x = torch.from_numpy(y.transpose(2, 0, 1)[None].astype(np.float32)) * (2 * signal) - signal
        z = (x - noise * network(x, torch.tensor([t]))) / signal
        return z[0].numpy().transpose(1, 2, 0) / 2 + 0.5

    return denoise


def bm3d_denoiser() -> Denoiser:
    """CBM3D of the package bm3d; raises ValueError with the installation command if it is missing."""
    try:
        import bm3d
    except ImportError as err:
        raise ValueError(BM3D_MISSING) from err
    return lambda y, sigma: bm3d.bm3d_rgb(y.astype(np.float64), sigma / 255)


def psnr(a: np.ndarray, b: np.ndarray) -> float:
    """PSNR in dB of images on [0, 1]; a is clipped."""
    return float(-10 * np.log10(np.mean((np.clip(a, 0, 1) - b) ** 2)))


def read_images(folder: Path) -> list[np.ndarray]:
    """The PNG files of a folder in the order of their names, [H, W, 3] on [0, 1], cropped to multiples of 8."""
    images = []
    for file in sorted(folder.glob("*.png")):
        pixels = np.asarray(Image.open(file).convert("RGB"), dtype=np.float64) / 255
        images.append(pixels[: pixels.shape[0] // 8 * 8, : pixels.shape[1] // 8 * 8])
    if not images:
        raise ValueError(f"prior_report: no PNG file in {folder}")
    return images


def denoising(denoiser: Denoiser, images: list[np.ndarray], sigma: float, seed: int) -> list[float]:
    """PSNR of every image at one noise level; the noise depends on seed, level and index only."""
    out = []
    for i, x in enumerate(images):
        noise = np.random.default_rng([seed, round(sigma * 100), i]).standard_normal(x.shape)
        out.append(psnr(denoiser(x + sigma / 255 * noise, sigma), x))
    return out


@torch.no_grad()
def samples(network: Network, count: int, side: int, steps: int, seed: int) -> Tensor:
    """Unconditional samples [count, 3, side, side] in [-1, 1] by ancestral sampling on respaced steps."""
    abar = alpha_bar()
    times = np.round(np.linspace(999, 0, steps)).astype(int)
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 3, side, side, generator=generator)
    for t, s in zip(times, [*times[1:], -1]):
        a, b = float(abar[t]), float(abar[s]) if s >= 0 else 1.0
        eps = network(x, torch.full((count,), int(t)))
        z = ((x - (1 - a) ** 0.5 * eps) / a**0.5).clamp(-1, 1)
        eps = (x - a**0.5 * z) / (1 - a) ** 0.5
        sigma = ((1 - b) / (1 - a) * (1 - a / b)) ** 0.5
        x = b**0.5 * z + max(1 - b - sigma**2, 0) ** 0.5 * eps
        x = x + sigma * torch.randn(x.shape, generator=generator)
    return x


def sheet(images: Tensor, columns: int) -> Image.Image:
    """Arranges the images in rows in one picture."""
    rows = [torch.cat(list(part), dim=2) for part in images.split(columns)]
    pixels = (torch.cat(rows, dim=1).permute(1, 2, 0) + 1) * 127.5
    return Image.fromarray(pixels.round().clamp(0, 255).to(torch.uint8).numpy())


def task_scores(program: Path, campaign: Path, prior: Path, seed: int, out: Path) -> dict[str, float]:
    """Mean PSNR per task of a campaign with a prior, from summary.json of the run."""
    command = [str(program), "run", str(campaign), "--prior", str(prior), "--seed", str(seed), "--json", "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise ValueError(f"prior_report: {' '.join(command)}: exit {done.returncode}: {said[-1] if said else ''}")
    rows = json.loads((out / "summary.json").read_text())["rows"]
    return {row["task"]: row["figures"]["psnr"]["mean"] for row in rows if "figures" in row}


def task_table(scores: dict[str, list[dict[str, float]]]) -> str:
    """Means over the seeds, and the gain of the first prior over each other prior with each seed; scores[prior][seed][task]."""
    first, *others = scores
    rows = []
    for task in scores[first][0]:
        values = {name: np.array([run.get(task, math.nan) for run in runs]) for name, runs in scores.items()}
        gains = [" ".join(f"{gain:+.2f}" for gain in values[first] - values[other]) for other in others]
        rows.append([task, *(f"{v.mean():.2f}" for v in values.values()), *gains])
    return table(["task", *scores, *(f"to {other}, by seed" for other in others)], rows)


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def milliseconds(network: Network, side: int = 128, repeats: int = 10) -> float:
    """Minimum time of one evaluation in torch; only comparable between priors."""
    x, t = torch.zeros(1, 3, side, side), torch.zeros(1, dtype=torch.int64)
    times = []
    with torch.no_grad():
        for _ in range(repeats):
            start = time.perf_counter()
            network(x, t)
            times.append(time.perf_counter() - start)
    return min(times) * 1000


def named(text: str) -> tuple[str, Path]:
    name, equals, path = text.partition("=")
    if not equals or not name or not path:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=FILE")
    return name, Path(path)


def arguments(argv: list[str] | None) -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--prior", type=Path, default=REPO / "internal/restore/prior/bundled/prior.onnx")
    p.add_argument("--beside", type=named, action="append", default=[], metavar="NAME=FILE", help="another prior")
    p.add_argument("--images", type=Path, action="append", help="folder of PNG files (default examples/images)")
    p.add_argument("--levels", type=float, nargs="+", default=[15, 25, 50], help="noise levels on the scale 0..255 (default 15 25 50)")
    p.add_argument("--no-bm3d", action="store_true", help="leave BM3D out")
    p.add_argument("--samples", type=Path, help="write unconditional samples to this PNG file")
    p.add_argument("--tasks", action="store_true", help="run the campaign with every prior")
    p.add_argument("--campaign", type=Path, default=REPO / "examples/demo.yaml")
    p.add_argument("--ddiff", type=Path, default=REPO / "bin/ddiff", help="the program (default bin/ddiff)")
    p.add_argument("--seeds", type=int, nargs="+", default=[1], help="seeds of the campaign's runs (default 1)")
    p.add_argument("--seed", type=int, default=1, help="seed of denoising and samples (default 1)")
    return p.parse_args(argv)


def report(args: argparse.Namespace) -> str:
    """Prints the tables and returns the last line, for scripts."""
    priors = [("prior", args.prior), *args.beside]
    networks = {name: load(path).noise for name, path in priors}
    methods = {name: network_denoiser(network) for name, network in networks.items()}
    if not args.no_bm3d:
        methods["BM3D"] = bm3d_denoiser()

    line: dict[str, float] = {}
    for folder in args.images or [REPO / "examples/images"]:
        images, rows = read_images(folder), []
        for sigma in args.levels:
            means = {name: float(np.mean(denoising(m, images, sigma, args.seed))) for name, m in methods.items()}
            rows.append([f"{sigma:g}", *(f"{v:.2f}" for v in means.values())])
            line.setdefault(f"denoise_{sigma:g}", means["prior"])
            if "BM3D" in means:
                line.setdefault(f"bm3d_{sigma:g}", means["BM3D"])
        print(f"Denoising, PSNR in dB, mean over the {len(images)} images of {folder.name}:\n")
        print(table(["noise of 255", *methods], rows) + "\n", flush=True)

    rows = [[name, path.name, f"{path.stat().st_size / 1e6:.2f}", f"{milliseconds(networks[name]):.0f}"] for name, path in priors]
    print(table(["prior", "file", "MB", "ms at 128x128 (torch)"], rows) + "\n")

    if args.tasks:
        scores: dict[str, list[dict[str, float]]] = {}
        with tempfile.TemporaryDirectory() as out:
            for name, path in priors:
                scores[name] = [
                    task_scores(args.ddiff, args.campaign, path, seed, Path(out) / f"{name}-{seed}") for seed in args.seeds
                ]
        seeds = ", ".join(map(str, args.seeds))
        print(f"Tasks of {args.campaign.name}, PSNR in dB, mean over the images and the seeds {seeds}:\n")
        print(task_table(scores) + "\n")
    if args.samples:
        sheet(samples(networks["prior"], 16, 64, 100, args.seed), 8).save(args.samples)
        print(f"Samples, 64x64, 100 steps, seed {args.seed}: {args.samples}\n")
    keys = sorted(line, key=lambda k: (k.startswith("bm3d"), float(k.rsplit("_", 1)[1])))
    return " ".join(f"{k}={line[k]:.2f}" for k in keys)


def main(argv: list[str] | None = None) -> int:
    args = arguments(argv)
    try:
        print(report(args))
    except (ValueError, OSError) as err:
        message = str(err)
        print(message if message.startswith("prior_report:") else f"prior_report: {message}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
