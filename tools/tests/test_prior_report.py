"""The report on a prior: its measures against cases with a known answer."""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path

import numpy as np
import prior_report
import pytest
import torch
from PIL import Image

from ddiff_torch.schedule import alpha_bar


class PointMass:
    """The exact noise estimate for a known clean image."""

    def __init__(self, clean: torch.Tensor | float) -> None:
        self.clean, self.abar, self.asked = clean, alpha_bar(), []

    def __call__(self, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        self.asked.append(int(t[0]))
        a = float(self.abar[int(t[0])])
        return (x - math.sqrt(a) * self.clean) / math.sqrt(1 - a)


def test_an_exact_prior_denoises_exactly() -> None:
    clean = np.random.default_rng(1).random((16, 24, 3))
    network = PointMass(torch.from_numpy(clean.transpose(2, 0, 1)[None] * 2 - 1).float())
    (value,) = prior_report.denoising(prior_report.network_denoiser(network), [clean], 25, 1)
    assert value > 90
    a = alpha_bar()[network.asked[0]]
    assert math.sqrt((1 - a) / a) == pytest.approx(25 / 127.5, rel=0.01)


def test_noise_has_the_level_and_is_common_to_all_methods() -> None:
    images = [np.full((64, 64, 3), 0.5)] * 2
    seen: list[np.ndarray] = []

    def keep(y: np.ndarray, sigma: float) -> np.ndarray:
        seen.append(y)
        return y

    first = prior_report.denoising(keep, images, 25, 1)
    assert first == prior_report.denoising(keep, images, 25, 1)
    assert np.mean(first) == pytest.approx(20 * math.log10(255 / 25), abs=0.1)
    assert not np.array_equal(seen[0], seen[1]) and np.array_equal(seen[0], seen[2])


def test_psnr_clips() -> None:
    assert prior_report.psnr(np.full((2, 2), 1.7), np.full((2, 2), 0.9)) == pytest.approx(20)


def test_samples_of_a_point_mass_are_the_point() -> None:
    out = prior_report.samples(PointMass(0.3), 2, 8, 20, 1)
    torch.testing.assert_close(out, torch.full_like(out, 0.3), rtol=0, atol=1e-3)


def test_sheet_places_images_in_rows() -> None:
    images = torch.linspace(-1, 1, 4)[:, None, None, None].expand(4, 3, 8, 8)
    picture = np.asarray(prior_report.sheet(images, 2))
    assert picture.shape == (16, 16, 3)
    assert [int(picture[y, x, 0]) for y in (0, 8) for x in (0, 8)] == [0, 85, 170, 255]


def _program(folder: Path, body: str) -> Path:
    file = folder / "program"
    file.write_text(f"#!{sys.executable}\nimport json, pathlib, sys\n{body}\n")
    file.chmod(0o755)
    return file


def test_task_scores_are_those_of_the_summary(tmp_path: Path) -> None:
    body = """
out = pathlib.Path(sys.argv[sys.argv.index("--out") + 1]); out.mkdir()
seed = int(sys.argv[sys.argv.index("--seed") + 1])
rows = [{"task": "hdr", "figures": {"psnr": {"n": 6, "mean": 25.5 + seed}}}, {"task": "other"}]
(out / "summary.json").write_text(json.dumps({"rows": rows}))"""
    program = _program(tmp_path, body)
    scores = prior_report.task_scores(program, Path("c.yaml"), Path("p.onnx"), 3, tmp_path / "out")
    assert scores == {"hdr": 28.5}


def test_tasks_are_compared_seed_by_seed() -> None:
    scores = {"prior": [{"hdr": 25.0}, {"hdr": 21.0}], "old": [{"hdr": 24.5}, {"hdr": 24.0}]}
    head, _, row = prior_report.task_table(scores).splitlines()
    assert head == "| task | prior | old | to old, by seed |"
    assert row == "| hdr | 23.00 | 24.25 | +0.50 -3.00 |"


def test_a_failed_campaign_is_named(tmp_path: Path) -> None:
    program = _program(tmp_path, 'sys.exit(print("no such prior", file=sys.stderr) or 7)')
    with pytest.raises(ValueError, match="exit 7: no such prior"):
        prior_report.task_scores(program, Path("c.yaml"), Path("p.onnx"), 1, tmp_path / "out")


def test_the_last_line_is_for_scripts(prior_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (36, 32, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    flags = ["--prior", str(prior_path), "--beside", f"again={prior_path}", "--images", str(tmp_path), "--no-bm3d"]
    assert prior_report.main([*flags, "--levels", "15", "50"]) == 0
    lines = capsys.readouterr().out.strip().splitlines()
    assert re.fullmatch(r"denoise_15=\d+\.\d\d denoise_50=\d+\.\d\d", lines[-1])
    row = next(line for line in lines if line.startswith("| 15"))
    assert row.split("|")[2] == row.split("|")[3]  # the same file twice


def test_wrong_input_is_one_line(
    prior_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert prior_report.main(["--prior", str(prior_path), "--images", str(tmp_path), "--no-bm3d"]) == 2
    assert f"no PNG file in {tmp_path}" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "bm3d", None)
    assert prior_report.main(["--prior", str(prior_path)]) == 2
    said = capsys.readouterr().err.strip()
    assert "pip install bm3d" in said and len(said.splitlines()) == 1
