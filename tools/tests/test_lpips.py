"""The exported LPIPS against the reference implementation: distances.json is by the package lpips, see lpips_vectors.py."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
import torch

import lpips_vectors
from ddiff_export import checkpoint, commands, lpips, onnx_file
from ddiff_export.write import Options

FOLDER = Path(__file__).parent / "lpips"


def loaded(network: str) -> tuple[lpips.LPIPS, dict[str, torch.Tensor]]:
    """The module with random weights of the classifier and the package's linear weights, from two files as a user has them."""
    state = lpips_vectors.backbone(lpips.LPIPS(network).state_dict())
    features = {name: value for name, value in state.items() if name.startswith("features.")}
    linear = checkpoint.read(FOLDER / f"{network}.pth")
    return lpips.load(network, [("features", features), ("linear", linear)]).eval(), features


@pytest.mark.parametrize("network", lpips_vectors.NETWORKS)
def test_equals_the_reference(network: str) -> None:
    module, _ = loaded(network)
    distances = json.loads((FOLDER / "distances.json").read_text())["distances"][network]
    assert set(distances) == set(lpips_vectors.PAIRS)
    for name, want in distances.items():
        with torch.no_grad():
            got = float(module(*lpips_vectors.pair(name)))
        assert got == pytest.approx(want, abs=1e-5), name
    assert max(distances.values()) > 0.01  # the tolerance is far below the distances


def test_metadata(tmp_path: Path) -> None:
    module, features = loaded("squeeze")
    torch.save(features, tmp_path / "features.pth")
    files = [tmp_path / "features.pth", FOLDER / "squeeze.pth"]
    (path,) = commands.perceptual("squeeze", files, tmp_path / "m.onnx", "", "", 1, Options(vectors=False))
    model = onnx.load(str(path))
    entries = onnx_file.metadata(model)
    wanted = {"kind": "metric", "metric": "lpips_squeeze", "metric_version": "1", "backbone": "squeeze", "range": "-1..1", "min_size": "17"}
    assert {key: entries[f"ddiff.{key}"] for key in wanted} == wanted
    assert entries["ddiff.weights_sha256"] == lpips.digest(module)
    assert [p.name for p in model.graph.input][:2] == ["x", "y"] and [p.name for p in model.graph.output] == ["distance"]
    with torch.no_grad():
        other = lpips.load("squeeze", [("features", features | {"features.0.bias": torch.zeros(64)}), ("linear", checkpoint.read(files[1]))])
    assert lpips.digest(other) != lpips.digest(module)


@pytest.mark.parametrize(("network", "side"), [("alex", 31), ("vgg", 16), ("squeeze", 17)])
def test_smallest_image(network: str, side: int) -> None:
    assert lpips.minimum(lpips.LPIPS(network)) == side


def test_small_network_is_current(tmp_path: Path) -> None:
    """The test data of internal/restore/metric is the network that the exporter writes today, but for the producer's details."""
    lpips_vectors.small(tmp_path)
    stored = onnx.load(str(lpips_vectors.PICTURES / "lpips_alex.onnx"))
    assert onnx_file.metadata(onnx.load(str(tmp_path / "lpips_alex.onnx"))) == onnx_file.metadata(stored)
    want = json.loads((lpips_vectors.PICTURES / "lpips.json").read_text())
    assert json.loads((tmp_path / "lpips.json").read_text()) == pytest.approx(want, abs=1e-5)
