#!/usr/bin/env python3
"""Goes from the paper's step to half-quadratic splitting, one change at a time, and makes other changes alone: ten tasks, the photographs of make quality at 64x64.

    python3 tools/ladder.py [--out DIR] [--data FILE] [--photographs DIR] [--sigma LIST] [--prior LIST] [flags of ddiff run]

Each rung keeps the changes of those above it; the variants have one change each. --data writes the PSNR of each photograph. The table has the mean PSNR in dB over
the tasks, and its paired difference to the rung above, or to what is varied, with the 95 % interval over the photographs (Student's t). A rerun resumes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import campaigns
import published
import quality

TASKS = ("super_resolution", "super_resolution_area", "gaussian_deblur", "motion_deblur", "nonlinear_deblur", "inpaint_random", "inpaint_box", "demosaic",
         "colorize", "denoise")
PAPER = ["--preset", "gradient"]
PLAIN = ["--set", "mirror=none"]
ROUGH = [*PLAIN, "--set", "start=rough"]
LONG = [*ROUGH, "--steps", "20"]
EARLY = [*LONG, "--set", "start_at=time", "--set", "t_start=999"]
# The flags of each rung, from the paper's step down to half-quadratic splitting, in which the dual variable is as good as zero.
RUNGS = {
    "paper's step": PAPER,
    "exact minimum": [*EARLY, "--set", "noise=full"],
    "without noise": EARLY,
    "late start": LONG,
    "fewer evaluations": ROUGH,
    "filled start": PLAIN,
    "mirrored images": [],
    "without dual variable": ["--set", "dual=0.000001"],
}
# One change each, to what published.VARIED names.
VARIANTS = {
    "constant step size": [*PAPER, "--set", "b=3.3"],
    "half the dual variable": ["--set", "dual=0.5"],
    "noise": ["--set", "noise=full"],
    "noise in the null space": ["--set", "noise=null_space"],
}


def measure(rung: str, out: Path, program: Path, shared: list[str], flags: list[str]) -> dict[tuple[str, str], str]:
    """The PSNR of a rung or variant by task and photograph."""
    folder = out / rung.replace(" ", "-").replace("'", "")
    if not campaigns.run(program, *shared, *(RUNGS | VARIANTS)[rung], "--out", str(folder), *flags):
        raise ValueError(f"{rung}: items failed, see {folder}/results.csv")
    return {(r["task"], r["image"]): f"{float(r['psnr']):.3f}" for r in campaigns.table((folder / "results.csv").read_text())}


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    parser.add_argument("--out", type=Path, default=campaigns.REPO / "out/ladder", help="folder of the outputs")
    parser.add_argument("--data", type=Path, help="file for the PSNR of each photograph, CSV")
    parser.add_argument("--program", type=Path, default=campaigns.REPO / "bin/ddiff", help="the ddiff program")
    parser.add_argument("--photographs", type=Path, help="folder of other photographs")
    parser.add_argument("--sigma", default="0.01,0.05,0.2", help="noise levels")
    parser.add_argument("--prior", default="bundled", help="priors, such as bundled,bundled:base")
    options, flags = parser.parse_known_args(argv)
    photographs = options.photographs
    if photographs is None:
        photographs = campaigns.REPO / ".cache/quality-photographs"
        quality.fetch(quality.PHOTOGRAPHS, photographs)
    rows = []
    for prior in options.prior.split(","):
        for sigma in options.sigma.split(","):
            shared = [str(photographs), "--task", ",".join(TASKS), "--size", "64", "--fit", "resize", "--sigma", sigma, "--prior", prior, "--seed", "1"]
            of = {rung: measure(rung, options.out / f"{prior}-{sigma}", options.program, shared, flags) for rung in (*RUNGS, *VARIANTS)}
            rows += [{"prior": prior, "sigma": sigma, "task": task, "image": image} | {rung: psnr[task, image] for rung, psnr in of.items()}
                     for task, image in of["paper's step"]]  # fmt: skip
    if options.data:
        options.data.write_text("\n".join([",".join(rows[0]), *(",".join(r.values()) for r in rows)]) + "\n")
    print("\n".join(published.ladder(rows)))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (ValueError, OSError, subprocess.CalledProcessError) as err:
        sys.exit(f"ladder: {err}")
