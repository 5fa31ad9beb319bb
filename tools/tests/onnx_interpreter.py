"""A small ONNX interpreter in torch with the operators of an exported score model.

It executes the file's graph node by node, independently of the architecture; the tests compare
ddiff_torch.onnx_prior with it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable

import onnx
import torch
import torch.nn.functional as F
from onnx import numpy_helper
from torch import Tensor

TYPES = {
    onnx.TensorProto.FLOAT: torch.float32,
    onnx.TensorProto.FLOAT16: torch.float16,
    onnx.TensorProto.INT64: torch.int64,
}


def run(path: str | Path, feeds: dict[str, Tensor]) -> dict[str, Tensor]:
    """Evaluates the model on the feeds and returns its outputs by name."""
    graph = onnx.load(str(path)).graph
    values = {i.name: torch.from_numpy(numpy_helper.to_array(i).copy()) for i in graph.initializer}
    values.update(feeds)
    for node in graph.node:
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        inputs = [values[name] if name else None for name in node.input]
        values[node.output[0]] = OPERATORS[node.op_type](attributes, *inputs)
    return {o.name: values[o.name] for o in graph.output}


def constant(a: dict[str, Any]) -> Tensor:
    return torch.from_numpy(numpy_helper.to_array(a["value"]).copy())


def reshape(a: dict[str, Any], x: Tensor, shape: Tensor) -> Tensor:
    return x.reshape([x.shape[i] if s == 0 else s for i, s in enumerate(shape.tolist())])


def unsqueeze(a: dict[str, Any], x: Tensor, axes: Tensor) -> Tensor:
    for axis in axes.tolist():
        x = x.unsqueeze(axis)
    return x


def squeeze(a: dict[str, Any], x: Tensor, axes: Tensor) -> Tensor:
    for axis in sorted(axes.tolist(), reverse=True):
        x = x.squeeze(axis)
    return x


def div(a: dict[str, Any], x: Tensor, y: Tensor) -> Tensor:
    return x / y if x.is_floating_point() else torch.div(x, y, rounding_mode="trunc")


def gather(a: dict[str, Any], x: Tensor, indices: Tensor) -> Tensor:
    axis = a.get("axis", 0)
    return x.index_select(axis, indices.reshape(-1)).reshape(
        *x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]
    )


def take(a: dict[str, Any], x: Tensor, starts: Tensor, ends: Tensor, axes: Tensor, steps: Tensor | None = None) -> Tensor:
    assert steps is None or (steps == 1).all(), "only contiguous slices"
    for start, end, axis in zip(starts.tolist(), ends.tolist(), axes.tolist()):
        x = x.narrow(axis, start, min(end, x.shape[axis]) - start)
    return x


def conv(a: dict[str, Any], x: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
    pads = a["pads"]
    assert pads[:2] == pads[2:], "only symmetric padding"
    return F.conv2d(x, w, b, stride=a["strides"], padding=pads[:2], dilation=a["dilations"], groups=a["group"])


def pad(a: dict[str, Any], x: Tensor, pads: Tensor, value: Any = None) -> Tensor:
    assert a["mode"] == b"edge"
    for axis, (before, after) in enumerate(zip(*pads.reshape(2, -1).tolist())):
        index = torch.arange(-before, x.shape[axis] + after).clamp(0, x.shape[axis] - 1)
        x = x.index_select(axis, index)
    return x


def gemm(a: dict[str, Any], x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return a["alpha"] * (x @ (w.T if a.get("transB") else w)) + a["beta"] * b


def instance_norm(a: dict[str, Any], x: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    dims = tuple(range(2, x.dim()))
    shape = (1, -1) + (1,) * len(dims)
    centred = x - x.mean(dims, keepdim=True)
    var = centred.square().mean(dims, keepdim=True)
    return centred / (var + a["epsilon"]).sqrt() * scale.view(shape) + bias.view(shape)


def group_norm(a: dict[str, Any], x: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    n, c = x.shape[:2]
    ones, zeros = torch.ones(a["num_groups"]), torch.zeros(a["num_groups"])
    normal = instance_norm({"epsilon": a.get("epsilon", 1e-5)}, x.reshape(n, a["num_groups"], -1), ones, zeros)
    return normal.reshape(x.shape) * scale.view(1, c, 1, 1) + bias.view(1, c, 1, 1)


def resize(a: dict[str, Any], x: Tensor, roi: Any, scales: Tensor) -> Tensor:
    assert a["mode"] == b"nearest" and a["coordinate_transformation_mode"] == b"asymmetric"
    for axis, scale in enumerate(scales.tolist()):
        x = x.repeat_interleave(int(scale), dim=axis)
    return x


def depth_to_space(a: dict[str, Any], x: Tensor) -> Tensor:
    assert a["mode"] == b"CRD"
    n, c, h, w = x.shape
    k = a["blocksize"]
    return x.reshape(n, c // k**2, k, k, h, w).permute(0, 1, 4, 2, 5, 3).reshape(n, c // k**2, h * k, w * k)


OPERATORS: dict[str, Callable[..., Tensor]] = {
    "Add": lambda a, x, y: x + y,
    "Cast": lambda a, x: x.to(TYPES[a["to"]]),
    "Concat": lambda a, *xs: torch.cat(xs, dim=a["axis"]),
    "Constant": constant,
    "Conv": conv,
    "Cos": lambda a, x: x.cos(),
    "DepthToSpace": depth_to_space,
    "Div": div,
    "Gather": gather,
    "Gemm": gemm,
    "GroupNormalization": group_norm,
    "InstanceNormalization": instance_norm,
    "LayerNormalization": lambda a, x, scale, bias: F.layer_norm(x, scale.shape, scale, bias, a["epsilon"]),
    "MatMul": lambda a, x, y: x @ y,
    "Pad": pad,
    "Mul": lambda a, x, y: x * y,
    "ReduceMean": lambda a, x: x.mean(tuple(a["axes"]), keepdim=bool(a.get("keepdims", 1))),
    "ReduceSum": lambda a, x, axes: x.sum(tuple(axes.tolist()), keepdim=bool(a.get("keepdims", 1))),
    "Pow": lambda a, x, y: x**y,
    "Reshape": reshape,
    "Resize": resize,
    "Shape": lambda a, x: torch.tensor(x.shape),
    "Sigmoid": lambda a, x: x.sigmoid(),
    "Sin": lambda a, x: x.sin(),
    "Slice": take,
    "Softmax": lambda a, x: x.softmax(a["axis"]),
    "Squeeze": squeeze,
    "Sub": lambda a, x, y: x - y,
    "Transpose": lambda a, x: x.permute(*a["perm"]),
    "Unsqueeze": unsqueeze,
}
