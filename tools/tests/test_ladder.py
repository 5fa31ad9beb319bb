"""The ladder from the paper's step to half-quadratic splitting: a small run through the program, and its table."""

from __future__ import annotations

import csv
from pathlib import Path

import ladder
import published
import pytest
from conftest import REPO


def test_rungs_differ(program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(ladder, "TASKS", ("demosaic",))
    data = tmp_path / "data.csv"
    ladder.main(["--out", str(tmp_path / "out"), "--data", str(data), "--program", program, "--photographs", str(REPO / "examples/images"), "--limit", "2",
                 "--size", "32", "--threads", "1", "--steps", "4", "--sigma", "0.05", "--prior", "bundled"])
    lines = capfd.readouterr().out.splitlines()
    with data.open() as f:
        stored = list(csv.DictReader(f))
    rungs = [*ladder.RUNGS, *ladder.VARIANTS]
    assert lines == published.ladder(stored) and len(lines) == 2 + len(rungs) and len(stored) == 2
    for row in stored:  # with the number of steps given, the rung of fewer evaluations is the late start
        assert len({row[rung] for rung in rungs}) == len(rungs) - 1 and row["fewer evaluations"] == row["late start"]


def test_table() -> None:
    """The mean of the first rung, and the differences of others, to the one above or to what a variant varies: 1 and 3 dB on two photographs, in the mean over the tasks."""
    rungs = ("paper's step", "exact minimum", "constant step size")
    rows = [{"prior": "bundled", "sigma": "0.05", "task": task, "image": image} | {rung: str(p) for rung, p in zip(rungs, psnr)} for task, image, psnr in (
        ("denoise", "a", (20, 20, 21)), ("denoise", "b", (22, 25, 23)), ("hdr", "a", (30, 32, 31)), ("hdr", "b", (32, 35, 33)),
    )]  # fmt: skip
    assert published.ladder(rows) == [
        "| | bundled, 0.05 |", "|---|---|", "| paper's step | 26.00 |", "| exact minimum | +2.00 ± 12.71 |", "| constant step size | +1.00 ± 0.00 |"]
