"""The benchmark: its faster operators equal the plain operators, and its output is JSON."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from ddiff_torch import bench, compare, operators
from ddiff_torch.random_inputs import path_kernel, picture


def images(height: int, width: int) -> torch.Tensor:
    return torch.from_numpy(picture(np.random.default_rng(1), 2, height, width)).double()


def test_separable_gaussian_is_the_operator() -> None:
    x = images(24, 40)
    torch.testing.assert_close(bench.separable_gaussian(x, 1.5, 15), operators.gaussian_deblur(x, 1.5, 15))


def test_correlation_by_dft_is_the_operator() -> None:
    x = images(24, 40)
    kernel = torch.from_numpy(np.stack([path_kernel(np.random.default_rng(i), 11) for i in range(2)])).double()
    torch.testing.assert_close(bench.correlate_dft(x, kernel), operators.correlate(x, kernel))
    fast = operators.nonlinear_deblur(x, kernel, blur=bench.correlate_dft)
    torch.testing.assert_close(fast, operators.nonlinear_deblur(x, kernel))


@pytest.mark.parametrize("task", bench.SETTINGS)
def test_prints_json(task: str, prior_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert bench.main(["--prior", str(prior_path), "--task", task, "--size", "32", "--steps", "2"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["ms_per_step"] >= result["ms_per_step_network"] > 0
    assert (result["task"], result["size"], result["batch"], result["steps"]) == (task, 32, 1, 2)


def test_missing_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert bench.main(["--prior", str(tmp_path / "absent.onnx")]) == 2
    assert "absent.onnx" in capsys.readouterr().err


def test_variants_agree(prior_path: Path) -> None:
    x = torch.randn(1, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    plain = bench.VariantPrior(str(prior_path), "float32", "cpu").image(x, 300)
    for variant in bench.variants("cpu"):
        if "compiled" in variant:
            continue  # needs a C++ compiler and a minute
        other = bench.VariantPrior(str(prior_path), variant, "cpu").image(x, 300)
        assert other.dtype == torch.float32
        torch.testing.assert_close(other, plain, rtol=0, atol=0.05 if "bfloat16" in variant else 1e-4)


TABLE = """task batch network ms campaign ms share spread solver ms float32 ms
hdr 1 8.00 10.00 0.800 0.800..0.800 {ms} 16.00
denoise 1 8.00 10.00 0.800 0.800..0.800 0.00 0.00
share_light=0.8{round} share_heavy=skipped provider=cpu precision=bfloat16 ms_per_step={ms} rounds=1 of=1
"""


class Variants:
    """A bench whose times are those of each variant; one variant cannot run."""

    device = "cpu"

    def measure(self, variant: str, task: str, batch: int, steps: int) -> dict[str, object]:
        assert (task, batch) == ("hdr", 1)
        if variant == "compiled":
            raise RuntimeError("no compiler")
        return {"ms_per_step": {"float32": 40.0, "bfloat16": 18.0}[variant], "steps": steps}


def test_compares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    """Ratios are medians over the rounds: both sides of a round see the same load."""
    program = tmp_path / "ddiff"
    rounds = tmp_path / "rounds"
    for i, ms in enumerate((10, 30, 12)):
        (tmp_path / f"{i}.txt").write_text(TABLE.format(ms=ms, round=i))
    program.write_text(f'#!/bin/sh\necho "$*" >> {rounds}\ncat {tmp_path}/$(($(wc -l < {rounds}) - 1)).txt\n')
    program.chmod(0o755)
    monkeypatch.setattr(compare, "variants", lambda _: ["float32", "compiled", "bfloat16"])
    monkeypatch.setattr(compare, "Bench", lambda *_: Variants())
    options = ["--program", str(program), "--task", "hdr,denoise", "--batch", "1", "--threads", "2", "--items", "4"]
    assert compare.main(options) == 0
    out = capsys.readouterr().out
    assert "skipped: compiled, batch 1: RuntimeError: no compiler" in out
    last = "share_light=0.81 share_heavy=skipped vs_torch=1.50 vs_torch_float32=2.50 provider=cpu precision=bfloat16 ms_per_step=12.0 rounds=3 of=3"
    assert out.splitlines()[-1] == last
    words = rounds.read_text().splitlines()
    assert len(words) == 3
    assert "--solver --rounds 1 --task hdr,denoise --batch 1" in words[0]
    assert words[0].endswith("--items 4")
    # After an error the results are those of the complete rounds.
    rounds.unlink()
    (tmp_path / "1.txt").write_text("no table")
    assert compare.main(options) == 1
    out = capsys.readouterr()
    assert out.out.splitlines()[-1].endswith(" ms_per_step=10.0 rounds=1 of=3")
    assert "compare: " in out.err
    program.write_text("#!/bin/sh\nexit 4\n")
    assert compare.main(options) == 1
    assert "ended with code 4" in capsys.readouterr().err
