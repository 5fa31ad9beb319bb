"""A prior from a denoiser in an ONNX file: its graph with the nodes of Tweedie's formula around it."""

from __future__ import annotations

import numpy as np
from onnx import ModelProto, TensorProto, ValueInfoProto, compose, helper, numpy_helper

from .errors import ExportError
from .onnx_file import IMAGE
from .tweedie import RANGES, Tables

PREFIX = "denoiser/"


class _Nodes:
    """Nodes and constants around another graph."""

    def __init__(self) -> None:
        self.nodes: list = []
        self.constants: list = []

    def constant(self, name: str, value: object, kind: type = np.float32) -> str:
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype=kind), name))
        return name

    def add(self, op: str, out: str, *inputs: str) -> str:
        self.nodes.append(helper.make_node(op, list(inputs), [out]))
        return out


def wrap(model: ModelProto, lo: float, hi: float, scale: str, source: str) -> ModelProto:
    """Builds the prior of a denoiser. The inputs of model are an image batch and sigma, as [N],
    [N, 1, 1, 1] or [N, 1, H, W]; its first output is the denoised batch."""
    given = {t.name for t in model.graph.initializer}
    inputs = [p for p in model.graph.input if p.name not in given]
    images = [p for p in inputs if _rank(p) == 4 and _dim(p, 1) != 1] or [p for p in inputs if _rank(p) == 4]
    if len(inputs) != 2 or not images or not model.graph.output:
        raise ExportError(f"{source}: a denoiser needs the inputs image batch and sigma; the graph has {len(inputs)} inputs")
    image = images[0]
    sigma = next(p for p in inputs if p is not image)
    channels = _dim(image, 1)
    if channels is None or _rank(sigma) not in (1, 4):
        raise ExportError(f"{source}: {image.name} must have a fixed number of channels, {sigma.name} must have 1 or 4 dimensions")
    inner = PREFIX + image.name, PREFIX + sigma.name, PREFIX + model.graph.output[0].name
    spread = _rank(sigma) == 4 and not _dim(sigma, 2) == _dim(sigma, 3) == 1
    column = _rank(sigma) == 4

    tables, (gain, offset) = Tables(lo, hi), RANGES[scale]
    n, after = _Nodes(), _Nodes()
    to_column = n.constant("column", [-1, 1, 1, 1], np.int64)
    row = {name: n.add("Gather", f"{name}_t", n.constant(name, getattr(tables, name).numpy()), "t") for name in ("signal", "noise", "level")}
    signal, noise = (n.add("Reshape", f"{name}_column", row[name], to_column) for name in ("signal", "noise"))
    g, o = n.constant("gain", gain), n.constant("offset", offset)
    scaled = n.add("Mul", "scaled", n.add("Div", "noisy", "x", signal), g)
    n.add("Add", inner[0], scaled, o)
    asked = n.add("Mul", "asked", row["level"], g)
    if not column:
        n.add("Identity", inner[1], asked)
    elif not spread:
        n.add("Reshape", inner[1], asked, to_column)
    else:
        bounds = [n.constant(name, [value], np.int64) for name, value in (("from", 0), ("to", 1), ("axis", 1))]
        zeros = n.add("Mul", "zeros", n.add("Slice", "one_channel", "x", *bounds), n.constant("zero", 0.0))
        n.add("Add", inner[1], n.add("Reshape", "asked_column", asked, to_column), zeros)
    clean = after.add("Div", "clean", after.add("Sub", "centred", inner[2], o), g)
    after.add("Div", "eps", after.add("Sub", "rest", "x", after.add("Mul", "kept", clean, signal)), noise)

    out = compose.add_prefix(model, PREFIX)
    graph = out.graph
    nodes = [*n.nodes, *graph.node, *after.nodes]
    del graph.node[:], graph.input[:], graph.output[:], graph.value_info[:], out.metadata_props[:]
    graph.node.extend(nodes)
    graph.initializer.extend(n.constants)
    dims = [IMAGE[0], channels, *IMAGE[2:]]
    graph.input.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, dims))
    graph.input.append(helper.make_tensor_value_info("t", TensorProto.INT64, ["batch"]))
    graph.output.append(helper.make_tensor_value_info("eps", TensorProto.FLOAT, dims))
    return out


def _rank(port: ValueInfoProto) -> int:
    return len(port.type.tensor_type.shape.dim)


def _dim(port: ValueInfoProto, axis: int) -> int | None:
    dim = port.type.tensor_type.shape.dim[axis]
    return dim.dim_value if dim.HasField("dim_value") else None
