#!/usr/bin/env python3
"""Measures restorations in tiles: their difference from the whole image, and the cost of a large photograph.

    python3 tools/tile_report.py            # 512x512 in tiles of 256 and whole (10 minutes of processor time)
    python3 tools/tile_report.py --large    # 4000x3000, two steps (7 minutes, 5 GiB of memory)

The pictures are mosaics of the photographs of examples/images. The difference is that of the restored 8-bit pictures, in levels of 255.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

REPO = Path(__file__).resolve().parents[1]
LARGE = {"denoise": ["--sigma", "0.1"], "gaussian_deblur": ["--param", "std=0.2"]}
SMALL = {"denoise": ["--sigma", "0.1"], "gaussian_deblur": []}


def mosaic(names: list[str], columns: int, rows: int, side: int) -> Image.Image:
    """A grid of photographs with the given side, repeated in their order."""
    picture = Image.new("RGB", (columns * side, rows * side))
    for i in range(columns * rows):
        tile = Image.open(REPO / "examples/images" / f"{names[i % len(names)]}.png").convert("RGB")
        picture.paste(tile.resize((side, side), Image.Resampling.BICUBIC), (i % columns * side, i // columns * side))
    return picture


def ddiff(program: Path, *args: str) -> None:
    """Runs ddiff; raises ValueError with its last line if it fails."""
    done = subprocess.run([str(program), *args, "--quiet"], capture_output=True, text=True)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise ValueError(f"tile_report: ddiff {' '.join(args)}: exit {done.returncode}: {said[-1] if said else ''}")


def restored(program: Path, photo: Path, out: Path, *args: str) -> tuple[np.ndarray, float]:
    """The restored picture of a run, [H, W, 3] in levels of 255, and its PSNR to the truth."""
    ddiff(program, "run", str(photo), "--fit", "pad", "--out", str(out), *args)
    (folder,) = [f.parent for f in out.glob("items/*/result.json")]
    result = json.loads((folder / "result.json").read_text())
    return np.asarray(Image.open(folder / "restored.png").convert("RGB"), dtype=np.float64), result["metrics"]["psnr"]


def difference(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    """The root of the mean square and the maximum of a difference."""
    return math.sqrt(np.mean((a - b) ** 2)), float(np.max(np.abs(a - b)))


def compare(program: Path, steps: str, tilings: list[list[str]], work: Path) -> None:
    """Prints the differences of restorations in tiles from those of the whole image."""
    photo = work / "photo.png"
    mosaic(["astronaut", "chelsea", "coffee", "rocket"], 2, 2, 256).save(photo)
    print("| task | tiles | rms | max | PSNR in tiles | PSNR whole |\n|---|---|---|---|---|---|")
    for task, args in SMALL.items():
        args = ["--task", task, "--steps", steps, *args]
        whole, before = restored(program, photo, work / task, *args)
        for tiling in tilings:
            x, after = restored(program, photo, work / "-".join([task, *tiling]), *args, "--tile", tiling[0], "--overlap", tiling[1])
            rms, worst = difference(x, whole)
            print(f"| `{task}` | {tiling[0]}, overlap {tiling[1]} | {rms:.2f} | {worst:.0f} | {after:.2f} | {before:.2f} |", flush=True)


def large(program: Path, steps: str, tasks: list[str], work: Path, side: int = 1000) -> None:
    """Prints processor time and peak memory for a photograph of 4 times 3 sides. The peaks of later tasks are at least those of earlier ones."""
    photo = work / "photo.png"
    mosaic(["astronaut", "rocket", "retina", "hubble_deep_field", "coffee", "chelsea"], 4, 3, side).save(photo)
    for task in tasks:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        ddiff(program, "restore", str(photo), "--task", task, "--steps", steps, "--tile", "auto", "--out", str(work / task), *LARGE[task])
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
        each = seconds / (12e-6 * side**2) / int(steps)
        print(f"task={task} seconds={seconds:.0f} per_megapixel_and_step={each:.1f} peak_mib={used.ru_maxrss / 1024:.0f}", flush=True)


def main(argv: list[str] | None = None) -> int:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--large", action="store_true", help="measure 4000x3000 pixels")
    p.add_argument("--steps", help="solver steps (default 15, with --large 2)")
    p.add_argument("--tile", nargs=2, action="append", metavar=("SIDE", "OVERLAP"), help="tiling; repeatable (default 256 64)")
    p.add_argument("--task", choices=sorted(LARGE), action="append", help="task of --large; repeatable (default all)")
    p.add_argument("--ddiff", type=Path, default=REPO / "bin/ddiff", help="the program (default bin/ddiff)")
    args = p.parse_args(argv)
    try:
        with tempfile.TemporaryDirectory() as work:
            if args.large:
                large(args.ddiff, args.steps or "2", args.task or sorted(LARGE), Path(work))
            else:
                compare(args.ddiff, args.steps or "15", args.tile or [["256", "64"]], Path(work))
    except (ValueError, OSError) as err:
        print(str(err) if str(err).startswith("tile_report:") else f"tile_report: {err}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
