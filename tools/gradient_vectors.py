#!/usr/bin/env python3
"""Write the reference vectors of reverse mode through ONNX graphs: small networks and their gradients by PyTorch's autograd.

    python3 tools/gradient_vectors.py restore/onnx/testdata/gradients [--newer]

Each network is one ONNX file with random weights, NAME_OPSET.onnx.gz, and NAME_OPSET.json with the inputs, the vector w of y's shape and
gx = J^T w, where J is the Jacobian of y with respect to x. Arrays are little-endian float32 in base64; autograd computes in
float64. Operator sets 16 and 17 are exported through TorchScript, which all versions of PyTorch since 1.13 have. --newer
exports the same networks through torch.export at operator set 20 instead, and needs a current torch and onnxscript.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import json
import logging
import pathlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from unittest import mock

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from ddiff_export import adm, adm_blocks, vq
from torch import Tensor, nn

NEWER = 20


@dataclass
class Case:
    """A network y(x, ...) and its inputs, x first."""

    network: nn.Module
    inputs: dict[str, Tensor]
    opset: int = 17
    free: bool = False  # export with free dimensions of the image
    newer: bool = True  # the newer exporter can export it


def narrow() -> None:
    """Two channels per group, so that whole networks are small."""
    adm.GROUPS = adm_blocks.GROUPS = vq.GROUPS = 2


def decoder() -> nn.Module:
    """A VQ decoder: residual blocks, attention, nearest upsampling."""
    return vq.Decode(vq.FirstStage(vq.Config(width=4, multipliers=(1, 1, 2), blocks=1, codes=16)), scale=0.5)


def unet() -> nn.Module:
    """A U-Net of guided diffusion with attention at both resolutions."""
    return adm.UNet(adm.Config(16, 4, (1, 2), 1, (1, 2), head_width=2))


class Function(nn.Module):
    """A function of tensors as a module; layers are the modules with its weights."""

    def __init__(self, f: Callable[..., Tensor], *layers: nn.Module) -> None:
        super().__init__()
        self.f, self.layers = f, nn.ModuleList(layers)

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.f(*self.layers, *inputs)


def bounds(x: Tensor) -> Tensor:
    """The pieces of networks that clamp, compare and divide."""
    low, high = x.clamp(-0.7, 0.9), torch.where(x > 0.2, x * x, -0.5 * x)
    return torch.cat([low, high, torch.maximum(low, high), torch.sqrt(x * x + 0.3), x.abs() + 1, 1 / (2 + x * x)], dim=1)


def activations(x: Tensor) -> Tensor:
    """The activations of networks, side by side."""
    parts = [F.silu(x), F.gelu(x), F.gelu(x, approximate="tanh"), F.relu(x), F.leaky_relu(x, 0.2), F.elu(x), F.softplus(x)]
    parts += [torch.sigmoid(x), torch.tanh(x), F.hardswish(x), torch.erf(x), F.mish(x)]
    return torch.cat(parts, dim=1)


def moves(x: Tensor) -> Tensor:
    """Moves of elements."""
    a, b = x.chunk(2, dim=1)
    folded = F.pixel_unshuffle(F.pixel_shuffle(torch.cat([a, b.flip(3)], 1), 2), 2)
    padded = F.pad(x, (1, 2, 2, 1), mode="reflect")[:, :, ::2, 1:]
    turned = x.permute(0, 3, 1, 2).flatten(2).expand(-1, -1, -1)
    return torch.cat([folded.flatten(), padded.flatten(), turned.flatten(), x[:, 1].roll(2, 1).flatten()]).reshape(1, -1)


def sums(x: Tensor) -> Tensor:
    """Reductions and products."""
    centred = x - x.mean((2, 3), keepdim=True)
    deviation = centred.square().sum(1, keepdim=True).sqrt()
    gram = torch.einsum("nchw,ndhw->ncd", x, centred)
    return torch.cat([(centred / (deviation + 0.1)).flatten(1), gram.flatten(1), torch.logsumexp(x, (2, 3)), x.amax((2, 3))], 1)


class Attention(nn.Module):
    """Attention over the pixels by PyTorch's own layer."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(channels, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.flatten(2).transpose(1, 2)
        return self.attention(tokens, tokens, tokens, need_weights=False)[0]


def convolutions() -> nn.Module:
    """Strides, groups, dilation, asymmetric padding and transposed convolutions in a row."""
    return nn.Sequential(
        nn.Conv2d(4, 6, 5, stride=2, padding=2, groups=2), nn.SiLU(), nn.ConstantPad2d((0, 1, 1, 0), 0.0),
        nn.Conv2d(6, 6, 3, dilation=2, padding=1), nn.ConvTranspose2d(6, 4, 4, stride=2, padding=1), nn.Tanh(),
        nn.ConvTranspose2d(4, 4, 3, stride=3, groups=2, output_padding=1), nn.BatchNorm2d(4), nn.Conv2d(4, 3, 1),
    )  # fmt: skip


def resizes(x: Tensor) -> Tensor:
    """Interpolations: all forms that PyTorch exports."""
    parts = [F.interpolate(x, scale_factor=2.0, mode="nearest"), F.interpolate(x, size=(7, 6), mode="nearest")]
    for mode in ("bilinear", "bicubic"):
        for align in (False, True):
            parts.append(F.interpolate(x, size=(8, 3), mode=mode, align_corners=align))
            parts.append(F.interpolate(x, scale_factor=2.0, mode=mode, align_corners=align))
    return torch.cat([p.flatten() for p in parts]).reshape(1, -1)


def pools(x: Tensor) -> Tensor:
    """Poolings."""
    parts = [F.avg_pool2d(x, 2), F.avg_pool2d(x, 3, 2, padding=1, count_include_pad=False), F.max_pool2d(x, 3, 2, padding=1)]
    parts += [F.adaptive_avg_pool2d(x, 1), F.adaptive_avg_pool2d(x, (4, 2)), F.avg_pool1d(x.flatten(2), 3, 2, padding=1), F.max_pool2d(x, 2)]
    return torch.cat([p.flatten() for p in parts]).reshape(1, -1)


def norms() -> nn.Module:
    """Normalisations and softmax."""

    def f(group: nn.Module, instance: nn.Module, layer: nn.Module, x: Tensor) -> Tensor:
        y = layer(instance(group(x)))
        return torch.cat([y, torch.softmax(y, 1), torch.log_softmax(y, -1), F.normalize(y, dim=1)], 1)

    return Function(f, nn.GroupNorm(2, 4), nn.InstanceNorm2d(4, affine=True), nn.LayerNorm(6))


class ShiftedWindows(nn.Module):
    """A block of a Swin transformer: attention in windows that are shifted by half their side."""

    def __init__(self, channels: int, side: int) -> None:
        super().__init__()
        self.norm, self.mix, self.side = nn.LayerNorm(channels), nn.Linear(channels, 3 * channels), side
        self.bias = nn.Parameter(torch.zeros(side * side, side * side))

    def forward(self, x: Tensor) -> Tensor:
        n, c, h, w = x.shape
        side, shift = self.side, self.side // 2
        tokens = torch.roll(self.norm(x.permute(0, 2, 3, 1)), (-shift, -shift), (1, 2))
        windows = tokens.reshape(n, h // side, side, w // side, side, c).transpose(2, 3).reshape(-1, side * side, c)
        q, k, v = self.mix(windows).chunk(3, dim=-1)
        windows = torch.softmax(q @ k.transpose(1, 2) * c**-0.5 + self.bias, -1) @ v
        tokens = windows.reshape(n, h // side, w // side, side, side, c).transpose(2, 3).reshape(n, h, w, c)
        return x + torch.roll(tokens, (shift, shift), (1, 2)).permute(0, 3, 1, 2)


def convnext() -> nn.Module:
    """A block of ConvNeXt."""

    def f(deep: nn.Module, norm: nn.Module, wide: nn.Module, narrow: nn.Module, x: Tensor) -> Tensor:
        return x + narrow(F.gelu(wide(norm(deep(x).permute(0, 2, 3, 1))))).permute(0, 3, 1, 2)

    return Function(f, nn.Conv2d(4, 4, 7, padding=3, groups=4), nn.LayerNorm(4), nn.Linear(4, 16), nn.Linear(16, 4))


def recurrent(cell: nn.Module, x: Tensor) -> Tensor:
    """A recurrent cell over the rows."""
    state = torch.zeros_like(x[:, :, 0, 0])
    for i in range(4):
        state = cell(x[:, :, i, 0], state)
    return state


def places(x: Tensor) -> Tensor:
    """Places that depend on values, and sums up to a place."""
    values, at = torch.topk(x.flatten(2), 5, dim=2)
    written = 2 * x.tanh()
    written[0, :, [1, 3, 0], [2, 2, 5]] = x[0, :, :3, 0] * x[0, :, :3, 1]
    parts = [values.square(), torch.gather(x.flatten(2).sin(), 2, at), written, x.cumsum(2), x.square().cumsum(3)]
    return torch.cat([p.flatten() for p in parts]).reshape(1, -1)


def cases() -> dict[str, Case]:
    """All networks. Sides differ, so that exchanged axes are noticed."""
    image = {"x": torch.randn(1, 4, 8, 6)}
    time = torch.tensor([321], dtype=torch.int64)
    return {
        "vq_decoder": Case(decoder(), {"x": torch.randn(1, 3, 4, 6)}, 17),
        "vq_decoder_free": Case(decoder(), {"x": torch.randn(1, 3, 4, 6)}, 16, free=True, newer=False),
        "adm_unet": Case(unet(), {"x": torch.randn(1, 3, 8, 12), "t": time}, 16),
        "adm_unet_free": Case(unet(), {"x": torch.randn(2, 3, 8, 12), "t": torch.tensor([321, 7])}, 17, free=True, newer=False),
        "convolutions": Case(convolutions(), image, 16),
        "resizes": Case(Function(resizes), {"x": torch.randn(1, 2, 5, 4)}, 17),
        "pools": Case(Function(pools), image, 17),
        "norms": Case(norms(), image, 17),
        "attention": Case(Attention(4), image, 17),
        "activations": Case(Function(activations), image, 17),
        "bounds": Case(Function(bounds), image, 17),
        "moves": Case(Function(moves), image, 17),
        "sums": Case(Function(sums), image, 17),
        "shifted_windows": Case(ShiftedWindows(4, 4), {"x": torch.randn(1, 4, 8, 12)}, 17, newer=False),
        "convnext": Case(convnext(), image, 17, newer=False),
        "recurrent": Case(Function(recurrent, nn.GRUCell(4, 4)), image, 17, newer=False),
        "places": Case(Function(places), image, 17, newer=False),
    }


def gradient(case: Case) -> dict[str, Tensor]:
    """w and gx = J^T w in float64."""
    network = case.network.double()
    inputs = [v.double() if v.is_floating_point() else v for v in case.inputs.values()]
    x = inputs[0].requires_grad_(True)
    with mock.patch.object(adm, "timestep_embedding", lambda *a: adm_blocks.timestep_embedding(*a).double()):
        y = network(*inputs)
    w = torch.randn(y.shape, generator=torch.Generator().manual_seed(1)).double()
    (gx,) = torch.autograd.grad(y, x, w)
    case.network.float()
    return {"w": w, "gx": gx}


def export(case: Case, path: pathlib.Path, opset: int) -> None:
    """Write the network as an ONNX file."""
    names = {"input_names": list(case.inputs), "output_names": ["y"], "opset_version": opset}
    values = tuple(case.inputs.values())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if opset >= NEWER:
            torch.onnx.export(case.network, values, str(path), dynamo=True, external_data=False, verbose=False, **names)
        else:
            axes = {"x": {0: "n", 2: "h", 3: "w"}, "t": {0: "n"}, "y": {0: "n", 2: "h", 3: "w"}}
            older = {} if torch.__version__ < "2" else {"dynamo": False}
            torch.onnx.export(case.network, values, str(path), dynamic_axes=axes if case.free else None, **names, **older)
    strip(path)


def strip(path: pathlib.Path) -> None:
    """Remove names of source lines and types of inner values, which no runtime needs, and compress the file."""
    model = onnx.load(path)
    del model.graph.value_info[:]
    for node in model.graph.node:
        node.doc_string = node.name = ""
        if hasattr(node, "metadata_props"):
            del node.metadata_props[:]
    for value in list(model.graph.input) + list(model.graph.output) + list(model.graph.initializer):
        if hasattr(value, "metadata_props"):
            del value.metadata_props[:]
    if hasattr(model.graph, "metadata_props"):
        del model.graph.metadata_props[:]
    del model.functions[:]
    path.with_name(path.name + ".gz").write_bytes(gzip.compress(model.SerializeToString(), mtime=0))
    path.unlink()


def array(v: Tensor) -> dict[str, object]:
    """An array for NAME.json."""
    kind = "<f4" if v.is_floating_point() else "<i8"
    return {"dims": list(v.shape), "type": kind, "data": base64.b64encode(v.detach().numpy().astype(kind).tobytes()).decode()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("outdir", type=pathlib.Path)
    parser.add_argument("--newer", action="store_true", help="export at operator set 20 through torch.export")
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    args.outdir.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    narrow()
    count = 0
    for name, case in cases().items():
        torch.manual_seed(len(name))
        with torch.no_grad():
            for p in case.network.parameters():
                p.copy_(torch.randn(p.shape) * (0.3 if p.dim() == 1 else max(p[0].numel(), 1) ** -0.5) + (p.dim() == 1) * 0.5)
        case.network.eval()
        if args.newer and not case.newer:
            continue
        opset = NEWER if args.newer else case.opset
        arrays = case.inputs | gradient(case)
        export(case, args.outdir / f"{name}_{opset}.onnx", opset)
        stored = {"torch": torch.__version__, "arrays": {k: array(v) for k, v in arrays.items()}}
        (args.outdir / f"{name}_{opset}.json").write_text(json.dumps(stored, indent=1) + "\n")
        count += 1
    print(f"networks={count} torch={torch.__version__}")


if __name__ == "__main__":
    main()
