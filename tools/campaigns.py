"""Campaigns of studies: run one to its end, and read its results."""

from __future__ import annotations

import csv
import io
import signal
import subprocess
from pathlib import Path

import numpy as np

REPO = Path(__file__).resolve().parents[1]
INCOMPLETE = 3  # the exit code of a run with failed or dead items


def run(program: Path, *args: str) -> bool:
    """Runs `ddiff run`, and reports whether all items are done. An interrupt or SIGTERM reaches ddiff once, as an interrupt, on which it
    stores checkpoints: a second one would end it at once, so it does not get those of the terminal."""
    process, asked, told = None, False, False

    def forward(*_: object) -> None:
        nonlocal asked, told
        asked = True
        if process is not None and not told:
            told = True
            process.send_signal(signal.SIGINT)

    before = {one: signal.signal(one, forward) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        process = subprocess.Popen([str(program), "run", *args], stdout=subprocess.DEVNULL, start_new_session=True)
        if asked:  # while ddiff started
            forward()
        code = process.wait()
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
    if asked:
        raise KeyboardInterrupt
    if code not in (0, INCOMPLETE):
        raise ValueError(f"ddiff run {args[0]}: exit code {code}")
    return code == 0


def table(text: str) -> list[dict[str, str]]:
    """The rows of a CSV file with # comments."""
    return list(csv.DictReader(io.StringIO("".join(line for line in text.splitlines(True) if not line.startswith("#")))))


def mean(x: list[float]) -> tuple[float, float]:
    """The mean and half its 95 % interval (Student's t), infinite for one value."""
    if len(x) < 2:
        return float(np.mean(x)), float("inf")
    from scipy import stats  # only here: the check of a device needs campaigns, and no statistics

    return float(np.mean(x)), float(stats.t.ppf(0.975, len(x) - 1) * stats.sem(x))


def holm(p: list[float]) -> list[bool]:
    """Which of several tests stay below 0.05 with Holm's correction."""
    order, out = sorted(range(len(p)), key=lambda i: p[i]), [False] * len(p)
    for rank, i in enumerate(order):
        if p[i] * (len(p) - rank) >= 0.05:
            break
        out[i] = True
    return out
