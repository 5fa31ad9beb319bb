"""The classical methods against cases with a known answer."""

from __future__ import annotations

import json
from pathlib import Path

import classical_methods as cm
import numpy as np
import pytest
from PIL import Image


def smooth(height: int, width: int) -> np.ndarray:
    y, x = np.mgrid[:height, :width]
    return np.stack([0.5 + 0.4 * np.sin(x / 1.5) * np.cos(y / 2), x / width, y / height], axis=-1)


@pytest.mark.parametrize("symmetric", [True, False])
def test_wiener_inverts_a_correlation(symmetric: bool) -> None:
    truth = smooth(48, 40)
    kernel = cm.gaussian(1.0)
    if not symmetric:
        kernel = np.zeros((7, 7))
        kernel[1, 2:6] = kernel[3, 3] = 0.2
    r = kernel.shape[0] // 2
    padded = np.pad(truth, ((r, r), (r, r), (0, 0)), mode="reflect")
    y = sum(kernel[i, j] * padded[i : i + 48, j : j + 40] for i in range(2 * r + 1) for j in range(2 * r + 1))
    x = cm.best(cm.wiener(y, kernel), truth)
    inner = (slice(12, -12), slice(12, -12))
    assert cm.psnr(x[inner], truth[inner]) > cm.psnr(y[inner], truth[inner]) + 10


def test_diffusion_keeps_known_pixels_and_continues_a_plane() -> None:
    y, x = np.mgrid[:24, :24]
    truth = np.stack([x / 30 + y / 60] * 3, axis=-1)
    mask = np.ones((24, 24))
    mask[8:16, 6:18] = 0
    filled = cm.diffuse(np.where(mask[..., None] > 0, truth, 0.9), mask)
    assert np.array_equal(filled[mask > 0], truth[mask > 0])
    np.testing.assert_allclose(filled, truth, atol=1e-4)


def write(folder: Path, sigma: float, params: dict[str, float], **pictures: np.ndarray) -> None:
    folder.mkdir()
    for name, x in pictures.items():
        Image.fromarray(np.round(x * 255).astype(np.uint8)).save(folder / (name.replace("_", ".") + ".png"))
    (folder / "restoration.json").write_text(json.dumps({"sigma": sigma, "params": params, "degradation": "noise"}))


def test_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    truth = smooth(32, 32)
    write(tmp_path / "a.super_resolution", 0.05, {"factor": 4}, truth=truth, photo=truth[::4, ::4], photo_restored=truth)
    write(tmp_path / "b.denoise", 0.1, {}, truth=truth, photo=truth * 0.9, photo_restored=truth * 0.95)
    assert cm.main([str(tmp_path), "--no-bm3d"]) == 0
    said = capsys.readouterr()
    rows = [[c.strip() for c in line.split("|")[1:-1]] for line in said.out.splitlines()[2:4]]
    assert rows[0][:2] == ["a", "`super_resolution`"] and rows[0][3] == rows[0][5] and float(rows[0][4]) > 50
    assert rows[1][5:] == ["", cm.MISSING] and "BM3D is not installed" in said.err
    last = said.out.splitlines()[-1]
    assert last.startswith("photographs=2 better_than_input=2 better_than_classical=1 compared=1 worst_db=6.0") and last.endswith(" unexplained=0")


def test_loss_without_a_word(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    truth = smooth(32, 32)
    for name in ("a", "b"):
        write(tmp_path / f"{name}.denoise", 0.1, {}, truth=truth, photo=truth * 0.95, photo_restored=truth * 0.9)
    facts = tmp_path / "b.denoise" / "restoration.json"
    facts.write_text(json.dumps({**json.loads(facts.read_text()), "said": True}))
    assert cm.main([str(tmp_path), "--no-bm3d"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("photographs=2 better_than_input=0 better_than_classical=0 compared=0 worst_db=-6.0") and last.endswith(" unexplained=1")


def test_dead_pixels_are_filtered_first() -> None:
    grey = np.full((24, 24, 3), 0.5)
    dead = grey.copy()
    dead[8, 9] = 1
    assert np.array_equal(cm.median(dead), grey)


def test_bm3d_gets_the_noise_level_on_the_unit_range(tmp_path: Path) -> None:
    truth = smooth(16, 16)
    write(tmp_path / "a.denoise", 0.2, {}, truth=truth, photo=truth, photo_restored=truth)
    seen: list[float] = []

    def keep(y: np.ndarray, sigma: float) -> np.ndarray:
        seen.append(sigma)
        return y

    assert cm.row(tmp_path / "a.denoise", keep)[6] == "BM3D" and seen == [0.1]


def test_photograph_without_restoration_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    truth = smooth(32, 32)
    write(tmp_path / "a.super_resolution", 0.05, {"factor": 4}, truth=truth, photo=truth[::4, ::4], photo_restored=truth)
    write(tmp_path / "b.super_resolution", 0.05, {"factor": 4}, truth=truth, photo=truth[::4, ::4])
    write(tmp_path / "c.super_resolution", 0.05, {"factor": 4}, photo=truth[::4, ::4], photo_restored=truth)
    assert cm.main([str(tmp_path), "--no-bm3d"]) == 0
    out, err = capsys.readouterr()
    assert "photographs=1 " in out
    assert f"classical_methods: {tmp_path / 'b.super_resolution'} has no restored photograph; its line is missing\n" in err
    assert f"classical_methods: {tmp_path / 'c.super_resolution'} has no truth.png; its line is missing\n" in err


def test_no_photograph_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cm.main([str(tmp_path)]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
