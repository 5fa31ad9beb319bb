"""Campaigns of studies: run one to its end, and read its results."""

from __future__ import annotations

import csv
import io
import subprocess
from pathlib import Path

import numpy as np
from scipy import stats

REPO = Path(__file__).resolve().parents[1]
INCOMPLETE = 3  # the exit code of a run with failed or dead items


def run(program: Path, *args: str) -> bool:
    """Runs `ddiff run`, and reports whether all items are done. After an interrupt it waits for the checkpoints of ddiff, to which the
    terminal sends the signal as well."""
    with subprocess.Popen([str(program), "run", *args], stdout=subprocess.DEVNULL) as process:
        try:
            code = process.wait()
        except KeyboardInterrupt:
            process.wait()
            raise
    if code not in (0, INCOMPLETE):
        raise ValueError(f"ddiff run {args[0]}: exit code {code}")
    return code == 0


def table(text: str) -> list[dict[str, str]]:
    """The rows of a CSV file with # comments."""
    return list(csv.DictReader(io.StringIO("".join(line for line in text.splitlines(True) if not line.startswith("#")))))


def mean(x: list[float]) -> tuple[float, float]:
    """The mean and half its 95 % interval (Student's t), 0 for one value."""
    if len(x) < 2:
        return float(np.mean(x)), 0.0
    return float(np.mean(x)), float(stats.t.ppf(0.975, len(x) - 1) * stats.sem(x))
