"""The benchmark: its faster operators equal the plain operators, and its output is JSON."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from ddiff_torch import bench, operators
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


def test_serves_requests(prior_path: Path) -> None:
    out = io.StringIO()
    good = {"variant": "float32", "task": "hdr", "batch": 2, "steps": 2}
    bad = [dict(good, task="none"), dict(good, variant="float8"), {}]
    bench.serve(bench.Bench(str(prior_path), 32, 1), [json.dumps(r) for r in [good, *bad, good]], out)
    hello, first, *refused, last = [json.loads(line) for line in out.getvalue().splitlines()]
    assert hello["torch"] == torch.__version__
    assert hello["variants"][0] == "float32"
    assert first["ms_per_step"] > 0
    assert last["batch"] == 2
    assert [set(answer) for answer in refused] == [{"error"}] * 3
    assert "none" in refused[0]["error"]
    assert "float8" in refused[1]["error"]
