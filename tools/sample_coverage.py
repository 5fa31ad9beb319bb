#!/usr/bin/env python3
"""Measures how often the intervals of pnpdm's samples hold the truth, on photographs: what docs/data/pnpdm-coverage.csv has.

    python3 tools/sample_coverage.py OUT [flags of ddiff run, such as --limit 3]

It runs examples/methods/coverage.yaml and prints a row for each task and photograph. A rerun resumes.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

import campaigns
import numpy as np
from classical_methods import read

CAMPAIGN = campaigns.REPO / "examples/methods/coverage.yaml"


def held(samples: np.ndarray, truth: np.ndarray, outside: int) -> float:
    """The share of values whose truth lies within the samples, the first axis, without so many at each end. A truth at an end counts half."""
    low, high = (np.sort(samples, axis=0)[i] for i in (outside, -1 - outside))
    return float(np.mean((truth >= low) & (truth <= high)) + np.mean((truth > low) & (truth < high))) / 2


def main(out: Path, flags: list[str]) -> None:
    if not campaigns.run(campaigns.REPO / "bin/ddiff", str(CAMPAIGN), "--out", str(out), *flags):
        raise ValueError(f"items failed, see {out}/results.csv")
    items: dict[tuple[str, str], list[Path]] = defaultdict(list)
    for r in campaigns.table((out / "results.csv").read_text()):
        items[r["task"], r["image"]].append(out / "items" / r["item"])
    print("task,image,samples,in_50,in_90,spread,error")
    for (task, image), of in sorted(items.items()):
        samples, truth, n = np.stack([read(item / "restored.png") for item in of]), read(of[0] / "truth.png"), len(of)
        spread = np.sqrt(samples.var(axis=0, ddof=1).mean() * (n + 1) / n)
        error = np.sqrt(np.square(samples.mean(axis=0) - truth).mean())
        print(f"{task},{image},{n},{held(samples, truth, n // 4):.3f},{held(samples, truth, 0):.3f},{spread:.4f},{error:.4f}")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    try:
        main(Path(sys.argv[1]), sys.argv[2:])
    except (ValueError, OSError) as err:
        sys.exit(f"coverage: {err}")
