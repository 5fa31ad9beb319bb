"""The comparison on a grid: a small run through the program, and its counts."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import campaigns
import numpy as np
import published
import pytest
import quality
from conftest import REPO
from PIL import Image


def test_grid_runs_and_resumes(program: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    args = ["--out", str(tmp_path / "out"), "--program", program, "--photographs", str(REPO / "examples/images"), "--no-bm3d",
            "--limit", "2", "--size", "32", "--threads", "1", "--task", "demosaic"]
    assert quality.main(args) == 0
    first = capfd.readouterr().out
    assert re.search(r"\nOf 2 pictures ddiff made [0-2] better than their measurement.\n"
                     r"cells=1 ddiff_highest=[01] dpir_highest=[01] worst_behind_db=\d+\.\d\d vs_bm3d_db=nan photographs=2\n$", first)
    assert quality.main([*args, "--data", str(tmp_path / "data.csv")]) == 0
    assert capfd.readouterr().out == first
    with (tmp_path / "data.csv").open() as f:
        stored = list(csv.DictReader(f))
    assert {r["method"] for r in stored} == {"ddiff", "dpir", "diffpir", "ddrm", "daps", "diffpir_late", "diffpir_mean"}
    assert {r["evaluations"] for r in stored if r["method"] == "diffpir_late"} == {"10"} and {r["evaluations"] for r in stored if r["method"] == "diffpir_mean"} == {"50"}
    mean = {m: np.mean([float(r["psnr"]) for r in stored if r["method"] == m]) for m in ("diffpir_late", "diffpir_mean")}
    assert mean["diffpir_mean"] > mean["diffpir_late"]  # the errors of the runs cancel in part
    assert all(0 < float(r["gradient_energy"]) < 2 for r in stored) and "\n| ddiff | " in first
    assert {r["evaluations"] for r in stored if r["method"] == "ddiff"} == {"10"}
    assert not quality.main([*args, "--diffpir", "--campaign", str(REPO / "examples/methods/regions.yaml")])
    assert "| sigma | ddiff | dpir | diffpir | ddiff ahead | dpir ahead |" in capfd.readouterr().out
    assert not quality.main([*args, "--campaign", str(quality.MANY)])
    assert "| sigma | ddiff | dpir | diffpir_late | diffpir_mean | ddiff ahead | dpir ahead |" in capfd.readouterr().out


def test_rotated(tmp_path: Path) -> None:
    truth = np.arange(48, dtype=np.uint8).reshape(4, 4, 3) * 5
    for item, restored in (("upright", truth), ("turned", truth[::-1, ::-1]), ("other", truth[::-1])):
        (tmp_path / "items" / item).mkdir(parents=True)
        Image.fromarray(truth).save(tmp_path / "items" / item / "truth.png")
        Image.fromarray(restored).save(tmp_path / "items" / item / "restored.png")
    rows = [{"item": item, "task": "phase_retrieval", "psnr": "7"} for item in ("upright", "turned", "other")]
    rows.append({"item": "turned", "task": "denoise", "psnr": "7"})
    scores = [r["psnr"] for r in quality.rotated(rows, tmp_path)]
    assert float(scores[0]) == 7 and float(scores[1]) > 100 and 7 < float(scores[2]) < 20
    assert scores[3:] == ["7"]


def test_counts() -> None:
    rows = []

    def cell(task: str, baseline: str, **methods: list[float]) -> None:
        for method, scores in methods.items():
            for image, score in enumerate(scores):
                for run in (-1, 1):  # two runs, whose mean counts
                    rows.append({"task": task, "params": "", "sigma": "0.05", "method": method, "image": str(image), "run": str(run),
                                 "psnr": str(score + run), "baseline_psnr": baseline})

    cell("best", "20", ddiff=[21, 22, 23], diffpir=[20, 21, 22])
    cell("tied", "21.5", ddiff=[21, 22, 23], diffpir=[21.02, 22.01, 23.01])
    cell("open", "", ddiff=[21, 22, 23], diffpir=[20, 23, 24])  # an interval of several dB decides nothing
    cell("behind", "", ddiff=[21, 22, 23], diffpir=[20, 20, 20], ddrm=[21.5, 22.5, 23.5])
    cell("second", "30", ddiff=[21, 22, 23], dpir=[20, 21, 22], diffpir=[19, 20, 21])
    verdicts, better, last = quality.report(rows, 0.123).splitlines()[-3:]
    # Three photographs decide nothing; the interval of "tied" is smaller than the relevant difference.
    assert verdicts == "Against the best other method ddiff is, in PSNR: ahead in 0, tied in 1, open in 4, behind in 0 cells."
    assert better == "Of 9 pictures ddiff made 5 better than their measurement."
    with pytest.raises(ValueError, match="behind  0.05, diffpir, 0: several settings"):
        quality.report(rows + rows[-30:-18], 0)
    assert last == "cells=5 ddiff_highest=2 dpir_highest=0 worst_behind_db=0.50 vs_bm3d_db=0.12 photographs=3"


@pytest.mark.parametrize("name", ["quality.csv", "quality-last.csv", "quality-once.csv", "quality-256.csv", "quality-512.csv"])
def test_stored_differences(name: str) -> None:
    """The column ahead is the difference to the best other method, of the same measurement."""
    lines = (REPO / "docs/data" / name).read_text().splitlines()
    for row in csv.DictReader(line for line in lines if not line.startswith("#")):
        best = max(float(row[method]) for method in ("daps", "ddrm", "diffpir") if row.get(method))
        assert float(row["ahead"]) == pytest.approx(float(row["ddiff"]) - best, abs=0.015), row


def test_published_figures(capfd: pytest.CaptureFixture[str]) -> None:
    assert quality.main(["--check"]) == 0
    counts, equal = re.fullmatch(r"counts=(\d+) equal=(\d+) relevant_ahead=\d+ relevant_behind=\d+ metrics=3 worst_photograph_db=6.00\n", capfd.readouterr().out).groups()
    assert counts == equal and int(counts) > 150
    page = published.pages()
    for was, other in (("ddiff_highest=21 ", "ddiff_highest=24 "), ("| 27.89 |", "| 27.88 |"),
                       ("in four of nine tasks", "in five of nine tasks"), ("prior 1.27 dB behind", "prior 1.28 dB behind"),
                       ("line [24.40", "line [24.41"), ("costs 0.60 dB", "costs 0.61 dB"), ("are 4.00, 6.00", "are 4.01, 6.00")):
        assert page.count(was) == 1
        _, wrong = published.check(page.replace(was, other))
        assert len(wrong) == 1 and "is " + re.search(r"\d[\d.]*|five", other)[0] in wrong[0]
    for line in (published.many(published.stored("quality-many.csv"))[2], published.ladder(published.stored("ladder.csv"))[-1]):
        assert published.check(page.replace(f"\n{line}\n", "\n"))[1] == [f"published is nothing, the data give {line}: {line}"]


def test_many() -> None:
    """The tables of sets with cells that lack a method: one beyond its interval, one within it, and one tied."""
    rows = []

    def cell(task: str, **methods: list[float]) -> None:
        rows.extend({"task": task, "params": "", "sigma": "0.05", "method": m, "image": str(i), "psnr": str(v)} for m, of in methods.items() for i, v in enumerate(of))

    cell("sure", ddiff=[21, 22, 23], dpir=[20, 21, 22.01], late=[22, 23, 24.01])
    cell("weak", ddiff=[21, 22, 23], dpir=[20, 21, 22.6])
    cell("tied", ddiff=[21, 22, 23], dpir=[21, 22.01, 23.01])
    assert published.many(rows) == [
        "| task | `ddiff` | `dpir` | difference | `late` | difference |", "|---|---|---|---|---|---|",
        "| sure | 22.00 | 21.00 | +1.00 ± 0.01 | 23.00 | −1.00 ± 0.01 |", "| weak | 22.00 | 21.20 | +0.80 ± 0.86 | – | – |", "| tied | 22.00 | 22.01 | −0.01 ± 0.01 | – | – |"]


def test_verdicts() -> None:
    """Two metrics of two tasks: relevant and sure, relevant for one metric, and a rival without the second."""
    rows = []
    for image in range(20):
        for method, psnr, ssim in (("ddiff", 22, 0.8), ("dpir", 21.5 + 0.01 * image, 0.9), ("mean", 21.999, "")):
            rows.append({"task": "denoise", "params": "", "sigma": "0.05", "method": method, "image": str(image), "psnr": str(psnr), "ssim": str(ssim)})
    assert published.against({"64": rows, "128": [r for r in rows if r["method"] != "mean"]}) == [
        "| `ddiff` against | metric | 64 | 128 |", "|---|---|---|---|",
        "| `dpir` | PSNR | 1, 0, 0, 0 | 1, 0, 0, 0 |", "| `dpir` | SSIM | 0, 0, 0, 1 `denoise` | 0, 0, 0, 1 `denoise` |",
        "| `mean` | PSNR | 0, 1, 0, 0 | – |"]


def test_holm() -> None:
    """The smallest p counts times the number of tests, the next one times one less, up to the first that is 0.05 or more."""
    assert campaigns.holm([0.01, 0.06, 0.015, 0.0005]) == [True, False, True, True]
    assert campaigns.holm([0.02, 0.01, 0.03]) == [True, True, True] and campaigns.holm([0.03, 0.01, 0.03]) == [False, True, False]


def test_energy() -> None:
    rows = np.tile(np.arange(4.0)[:, None, None], (1, 5, 3))
    assert quality.energy(rows) == 3 * 5 * 3 and quality.energy(2 * rows) == 4 * 45 and quality.energy(np.ones((4, 4, 3))) == 0
