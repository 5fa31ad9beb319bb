"""Passes over graphs, and formulas of the priors."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, numpy_helper
from torch import nn

from ddiff_export import __main__ as cli
from ddiff_export import adm, half, onnx_file, random_weights, tweedie, vectors, vq
from ddiff_export.adm_blocks import Residual
from ddiff_export.errors import ExportError
from ddiff_torch.schedule import alpha_bar


class Timed(nn.Module):
    """A residual block with a time input."""

    def __init__(self) -> None:
        super().__init__()
        self.block = random_weights.randomise(Residual(32, 32, 16, scale_shift=True), 0)

    def forward(self, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        return self.block(x, t.float()[:, None].expand(-1, 16) / 100)


@pytest.fixture
def timed() -> onnx.ModelProto:
    image = ("batch", 32, "height", "width")
    example = {"x": (torch.randn(1, 32, 8, 8), image), "t": (torch.tensor([3]), ("batch",))}
    return onnx_file.trace(Timed(), example, {"y": image})


def test_group_norm_is_exported_as_it_is_read(timed: onnx.ModelProto) -> None:
    """The Go side expects a reshape to groups, InstanceNormalization, a reshape back, then scale
    and shift with constants."""
    makers = {name: n for n in timed.graph.node for name in n.output}
    constants = {t.name for t in timed.graph.initializer} | {n.output[0] for n in timed.graph.node if n.op_type == "Constant"}

    def reader(name: str) -> onnx.NodeProto:
        (only,) = [n for n in timed.graph.node if name in n.input]
        return only

    norms = [n for n in timed.graph.node if n.op_type == "InstanceNormalization"]
    assert len(norms) == 2
    for n in norms:
        assert makers[n.input[0]].op_type == "Reshape"
        at = n.output[0]
        for op in ("Reshape", "Mul", "Add"):
            node = reader(at)
            assert node.op_type == op
            assert op == "Reshape" or constants.intersection(node.input)
            at = node.output[0]


def test_half_keeps_norms_and_time_in_float(timed: onnx.ModelProto) -> None:
    half.convert(timed)
    onnx.checker.check_model(timed)
    kinds = {t.name: t.data_type for t in timed.graph.initializer}
    inferred = onnx.shape_inference.infer_shapes(timed, check_type=True, strict_mode=True)
    kinds |= {p.name: p.type.tensor_type.elem_type for p in [*inferred.graph.value_info, *inferred.graph.input, *inferred.graph.output]}
    seen = {}
    for n in timed.graph.node:
        if n.op_type in ("InstanceNormalization", "Conv", "Gemm"):
            seen.setdefault(n.op_type, set()).add((kinds[n.input[0]], kinds[n.input[1]], kinds[n.output[0]]))
    full, low = TensorProto.FLOAT, TensorProto.FLOAT16
    assert seen == {"InstanceNormalization": {(full,) * 3}, "Conv": {(low,) * 3}, "Gemm": {(full,) * 3}}
    assert [p.type.tensor_type.elem_type for p in [timed.graph.input[0], timed.graph.output[0]]] == [full, full]
    assert not any(t.name.endswith(".half") and t.data_type != low for t in timed.graph.initializer)


def test_half_refuses_weights_out_of_range(timed: onnx.ModelProto) -> None:
    for tensor in timed.graph.initializer:
        if tensor.name == "block.in_layers.2.weight":
            tensor.CopyFrom(numpy_helper.from_array(1e6 * numpy_helper.to_array(tensor), tensor.name))
    with pytest.raises(ExportError, match="block.in_layers.2.weight has values beyond 65504"):
        half.convert(timed)


def test_tweedie_of_the_best_denoiser() -> None:
    """The least-squares denoiser and the noise estimate of Gaussian images are known."""
    mean, var = 0.2, 0.3

    def best(x: torch.Tensor, sigma: torch.Tensor) -> torch.Tensor:
        s2 = sigma.square()[:, None, None, None]
        return (var * x + s2 * mean) / (var + s2)

    prior = tweedie.Prior(best, 0.0, 200.0)  # type: ignore[arg-type]
    t = torch.tensor([0, 100, 500, 999])
    x = torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    a = torch.from_numpy(alpha_bar()).float()[t][:, None, None, None]
    want = (1 - a).sqrt() * (x - a.sqrt() * mean) / (a * var + 1 - a)
    torch.testing.assert_close(prior(x, t), want, rtol=0, atol=2e-4)


def test_tweedie_clamps_the_noise_level() -> None:
    asked = []

    def denoiser(x: torch.Tensor, sigma: torch.Tensor) -> torch.Tensor:
        asked.append(sigma)
        assert float(x.mean()) == pytest.approx(0.5, abs=1e-6)
        return x

    tweedie.Prior(denoiser, 0.1, 0.4, "0..1")(torch.zeros(3, 3, 4, 4), torch.tensor([0, 150, 999]))  # type: ignore[arg-type]
    middle = math.sqrt((1 - alpha_bar()[150]) / alpha_bar()[150])
    assert asked[0].tolist() == pytest.approx([0.05, middle / 2 if middle < 0.4 else 0.2, 0.2], abs=1e-6)
    lo, hi = tweedie.covered(0.1, 0.4)
    assert tweedie.level(lo) >= 0.1 > tweedie.level(lo - 1) and tweedie.level(hi) <= 0.4 < tweedie.level(hi + 1)
    assert f"t {lo}..{hi}" in tweedie.described(0.1, 0.4)


def test_quantiser_finds_the_nearest_code() -> None:
    stage = random_weights.randomise(vq.FirstStage(vq.Config().tiny()), 1)
    quantize = vq.Quantize(stage)
    z = vq.margin_latents(quantize, (2, 3, 4, 6), 2)
    flat, codes = z.permute(0, 2, 3, 1).reshape(-1, 3), stage.quantize.embedding.weight
    want = codes[torch.cdist(flat, codes).argmin(1)].reshape(2, 4, 6, 3).permute(0, 3, 1, 2)
    assert torch.equal(quantize(z), want) and float(quantize.margin(z)) > 1e-4


def test_learned_variance_and_class_leave_the_graph() -> None:
    c = adm.CONFIGS["imagenet_64"].tiny()
    whole = random_weights.randomise(adm.UNet(c), 2)
    x, t = torch.randn(1, 3, 16, 16), torch.tensor([40])
    e = whole.time_embed
    label = whole.label_emb.weight[3]
    reduced = adm.load(c, random_weights.state(whole), "test", label=3)
    whole.time_embed = nn.Sequential(e, Plus(label))
    torch.testing.assert_close(reduced(x, t), whole(x, t)[:, :3], rtol=0, atol=1e-5)
    with pytest.raises(ExportError, match="--class: 7 is outside 0..6"):
        adm.load(c, random_weights.state(adm.UNet(c)), "test", label=7)


class Plus(nn.Module):
    """x + a."""

    def __init__(self, a: torch.Tensor) -> None:
        super().__init__()
        self.a = a

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.a


def test_vectors_are_written_with_their_digests(tmp_path: Path) -> None:
    folder = vectors.write(tmp_path / "m.onnx", "float32", {"x": torch.ones(2, 3)}, {"y": torch.zeros(1)})
    said = json.loads((folder / "vectors.json").read_text())
    assert folder.name == "m.vectors" and said["inputs"] == {"x": "x.npy"} and said["outputs"] == {"y": "y.npy"}
    assert said["sha256"]["x.npy"] == onnx_file.file_digest(folder / "x.npy")
    assert np.load(folder / "x.npy").dtype == np.float32
    with pytest.raises(ValueError, match="not finite in y"):
        vectors.write(tmp_path / "m.onnx", "float32", {}, {"y": torch.tensor([float("nan")])})


def test_the_same_export_twice_is_the_same_file(tmp_path: Path) -> None:
    case = next(c for c in random_weights._drunet(tmp_path, 0) if c.name == "tweedie_drunet")
    for name in ("a.onnx", "b.onnx"):
        assert cli.main([*case.arguments, "--out", str(tmp_path / name)]) == 0
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()
