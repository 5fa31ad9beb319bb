#!/usr/bin/env python3
"""Goes from the paper's step to half-quadratic splitting, one change at a time, on the photographs of make quality at 64x64 and sigma 0.05.

    python3 tools/ladder.py [--out DIR] [--data FILE] [--photographs DIR] [flags of ddiff run]

Each rung keeps the changes of those above it. The table has the mean PSNR of each task in dB, that over all, and its paired difference to the rung above with
the 95 % interval over the photographs (Student's t). --data writes the PSNR of each photograph. A rerun resumes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import campaigns
import published
import quality

TASKS = ("super_resolution", "gaussian_deblur", "inpaint_random", "demosaic")
PLAIN = ["--set", "mirror=none"]
ROUGH = [*PLAIN, "--set", "start=rough"]
LONG = [*ROUGH, "--steps", "20"]
EARLY = [*LONG, "--set", "t_start=999"]
# The flags of each rung, from the paper's step down to half-quadratic splitting, in which the dual variable is as good as zero.
RUNGS = {
    "paper's step": ["--preset", "gradient"],
    "exact minimum": [*EARLY, "--set", "noise=full"],
    "without noise": EARLY,
    "late start": LONG,
    "10 evaluations": ROUGH,
    "filled start": PLAIN,
    "mirrored images": [],
    "without dual variable": ["--set", "dual=0.000001"],
}


def measure(rung: str, out: Path, program: Path, shared: list[str], flags: list[str]) -> list[dict[str, str]]:
    """The rows of a rung, one for each task and photograph."""
    folder = out / rung.replace(" ", "-").replace("'", "")
    if not campaigns.run(program, *shared, *RUNGS[rung], "--out", str(folder), *flags):
        raise ValueError(f"{rung}: items failed, see {folder}/results.csv")
    rows = campaigns.table((folder / "results.csv").read_text())
    return [{"rung": rung, "task": r["task"], "image": r["image"], "evaluations": r["network"], "psnr": f"{float(r['psnr']):.3f}"} for r in rows]


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    parser.add_argument("--out", type=Path, default=campaigns.REPO / "out/ladder", help="folder of the outputs")
    parser.add_argument("--data", type=Path, help="file for the PSNR of each photograph, CSV")
    parser.add_argument("--program", type=Path, default=campaigns.REPO / "bin/ddiff", help="the ddiff program")
    parser.add_argument("--photographs", type=Path, help="folder of other photographs")
    options, flags = parser.parse_known_args(argv)
    photographs = options.photographs
    if photographs is None:
        photographs = campaigns.REPO / ".cache/quality-photographs"
        quality.fetch(quality.PHOTOGRAPHS, photographs)
    shared = [str(photographs), "--task", ",".join(TASKS), "--size", "64", "--fit", "resize", "--sigma", "0.05", "--seed", "1"]
    rows = [row for rung in RUNGS for row in measure(rung, options.out, options.program, shared, flags)]
    if options.data:
        options.data.write_text("\n".join([",".join(rows[0]), *(",".join(r.values()) for r in rows)]) + "\n")
    print("\n".join(published.ladder(rows)))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (ValueError, OSError, subprocess.CalledProcessError) as err:
        sys.exit(f"ladder: {err}")
