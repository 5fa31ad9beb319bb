"""The report on tiles with a program that stands in for ddiff."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest
import tile_report

# Writes a grey picture of level 100 for the whole image and of level 103 for tiles.
PROGRAM = """
import json, pathlib, sys
from PIL import Image
args = sys.argv[1:]
out = pathlib.Path(args[args.index("--out") + 1])
if args[0] == "run":
    item = out / "items" / "a"
    item.mkdir(parents=True)
    tiled = "--tile" in args
    size = Image.open(args[1]).size
    Image.new("RGB", size, (103 if tiled else 100,) * 3).save(item / "restored.png")
    (item / "result.json").write_text(json.dumps({"metrics": {"psnr": 20.5 if tiled else 21.25}}))
else:
    assert Image.open(args[1]).size == (400, 300) and args[args.index("--tile") + 1] == "auto"
"""


def program(folder: Path, body: str = PROGRAM) -> Path:
    file = folder / "program"
    file.write_text(f"#!{sys.executable}\n{body}")
    file.chmod(0o755)
    return file


def test_difference_is_in_levels() -> None:
    a = np.zeros((2, 2, 3))
    b = a.copy()
    b[0, 0] = 4
    assert tile_report.difference(a, b) == (2, 4)


def test_mosaic_repeats_photographs_in_rows() -> None:
    picture = np.asarray(tile_report.mosaic(["astronaut", "rocket"], 3, 2, 16))
    assert picture.shape == (32, 48, 3)
    assert np.array_equal(picture[:16, :16], picture[:16, 32:]) and np.array_equal(picture[:16, :16], picture[16:, 16:32])
    assert not np.array_equal(picture[:16, :16], picture[:16, 16:32])


def test_comparison(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tile_report.main(["--ddiff", str(program(tmp_path)), "--tile", "256", "128"]) == 0
    rows = capsys.readouterr().out.splitlines()[2:]
    assert rows == [f"| `{task}` | 256, overlap 128 | 3.00 | 3 | 20.50 | 21.25 |" for task in ("denoise", "gaussian_deblur")]


def test_large_photograph(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tile_report.large(program(tmp_path), "2", ["denoise"], tmp_path, side=100)
    assert re.fullmatch(r"task=denoise seconds=\d+ per_megapixel_and_step=\d+\.\d peak_mib=\d+", capsys.readouterr().out.strip())


def test_a_failure_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = program(tmp_path, 'import sys; print("no such task", file=sys.stderr); sys.exit(2)')
    assert tile_report.main(["--ddiff", str(broken)]) == 2
    said = capsys.readouterr().err.strip()
    assert said.endswith("exit 2: no such task") and len(said.splitlines()) == 1
