"""Timing of a guided-diffusion network: input, output, and the exit code without CUDA."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from ddiff_export.adm import Config, UNet
from ddiff_torch import unet_bench


@pytest.fixture
def network(tmp_path: Path) -> Path:
    """A small network in the folder format, with its own output as the expected output."""
    torch.manual_seed(0)
    described = {
        "size": 16, "channels": 3, "base": 32, "multipliers": [1, 2], "blocks": 1, "attention": [8], "head_channels": 64, "time": 250,
    }  # fmt: skip
    unet = UNet(Config(16, 32, (1, 2), 1, (2,), head_width=64)).eval()
    header, data = {}, b""
    for name, value in unet.state_dict().items():
        raw = value.numpy().tobytes()
        header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    (tmp_path / "weights.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    (tmp_path / "network.json").write_text(json.dumps(described))
    x = torch.randn(1, 3, 16, 16)
    with torch.no_grad():
        y = unet(x, torch.tensor([250]))[:, :3]
    np.save(tmp_path / "x.npy", x.numpy())
    np.save(tmp_path / "y.npy", y.numpy())
    return tmp_path


def test_times_on_the_cpu(network: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert unet_bench.main(["--network", str(network), "--device", "cpu", "--batches", "1,2", "--seconds", "0"]) == 0
    out = json.loads(capsys.readouterr().out)
    assert out["device"] == "cpu" and out["max_abs"] < 1e-5
    assert [(r["mode"], r["precision"], r["batch"]) for r in out["results"]] == [("eager", "fp32", 1), ("eager", "fp32", 2)]
    assert all(r["ms"] > 0 and r["layout"] in ("nchw", "nhwc") for r in out["results"])
    assert out["skipped"] == ["compiled, tf32 and fp16: measured on CUDA only"]


def test_reports_the_largest_difference(network: Path, capsys: pytest.CaptureFixture[str]) -> None:
    y = np.load(network / "y.npy")
    y[0, 0, 0, 0] += 0.5
    np.save(network / "y.npy", y)
    assert unet_bench.main(["--network", str(network), "--device", "cpu", "--batches", "1", "--seconds", "0"]) == 0
    assert json.loads(capsys.readouterr().out)["max_abs"] == pytest.approx(0.5, abs=1e-3)


def test_without_cuda(network: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert unet_bench.main(["--network", str(network)]) == unet_bench.ABSENT
    assert "sees no CUDA device" in capsys.readouterr().err


def test_a_batch_that_fails_is_named(network: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unet, x, when, _ = unet_bench.load(network)
    timer = unet_bench.Timer(unet, torch.device("cpu"), tuple(x.shape[1:]), when, 0)

    def fail(*_: object) -> float:
        raise RuntimeError("out of memory\nTried to allocate")

    monkeypatch.setattr(unet_bench, "milliseconds", fail)
    assert timer.all([1, 4]) == []
    assert timer.skipped[1] == "eager fp32 batch 1 nchw: RuntimeError: out of memory"
    assert len(timer.skipped) == 3  # the larger batch is not tried
