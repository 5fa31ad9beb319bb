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
                 "--size", "32", "--threads", "1", "--steps", "4"])
    lines = capfd.readouterr().out.splitlines()
    with data.open() as f:
        stored = list(csv.DictReader(f))
    assert lines == published.ladder(stored) and len(lines) == 2 + len(ladder.RUNGS) and len(stored) == 2 * len(ladder.RUNGS)
    assert len({r["psnr"] for r in stored}) == len(stored) - 2  # with the number of steps given, the rung of 10 evaluations is the late start


def test_table() -> None:
    """The means of a rung, and its difference to the one above: 1 and 3 dB on two photographs, in the mean over the tasks."""
    rows = [{"rung": rung, "task": task, "image": image, "evaluations": "10", "psnr": str(psnr)} for rung, task, image, psnr in (
        ("first", "denoise", "a", 20), ("first", "denoise", "b", 22), ("first", "hdr", "a", 30), ("first", "hdr", "b", 32),
        ("second", "denoise", "a", 20), ("second", "denoise", "b", 25), ("second", "hdr", "a", 32), ("second", "hdr", "b", 35),
    )]  # fmt: skip
    assert published.ladder(rows) == [
        "| | evaluations | denoise | hdr | all | difference |", "|---|---|---|---|---|---|",
        "| first | 10 | 21.00 | 31.00 | 26.00 |  |", "| second | 10 | 22.50 | 33.50 | 28.00 | +2.00 ± 12.71 |"]
