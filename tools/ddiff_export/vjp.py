"""Reverse mode on ONNX graphs of convolutional networks.

add(model, "y", "x") adds the input w, with the shape of y, and the output gx = J^T w, where J is
the Jacobian of y with respect to x. The nodes of y come first in the file and do not depend on
w, so that a reader can cut the graph after them.

Every resampling must divide the sides of the image: the transpose of a convolution with a
stride cannot determine the number of remaining pixels.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, helper, numpy_helper

from .errors import ExportError


def add(model: ModelProto, output: str = "y", wrt: str = "x", seed: str = "w", result: str = "gx") -> None:
    """Adds seed and result to the model, in place."""
    inferred = onnx.shape_inference.infer_shapes(model)
    ports = {p.name: p for p in [*inferred.graph.value_info, *inferred.graph.input, *inferred.graph.output]}
    reverse = _Reverse(model, ports, wrt)
    graph = model.graph
    given = reverse.run(output, seed)
    graph.node.append(helper.make_node("Identity", [given], [result]))
    for name, source, to in ((seed, output, graph.input), (result, wrt, graph.output)):
        port = onnx.ValueInfoProto()
        port.CopyFrom(next(p for p in [*graph.input, *graph.output] if p.name == source))
        port.name = name
        to.append(port)


class _Reverse:
    def __init__(self, model: ModelProto, ports: dict, wrt: str) -> None:
        self.graph, self.ports = model.graph, ports
        self.constants = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
        for n in model.graph.node:
            if n.op_type == "Constant" and n.attribute[0].name == "value":
                self.constants[n.output[0]] = numpy_helper.to_array(n.attribute[0].t)
        self.active = {wrt}
        self.wrt = wrt
        self.count = 0
        self.zero = self.constant(np.float32(0))

    def run(self, output: str, seed: str) -> str:
        forward = []
        for n in self.graph.node:
            if self.active.intersection(n.input):
                self.active.update(n.output)
                forward.append(n)
        sums: dict[str, list[str]] = defaultdict(list)
        sums[output].append(seed)
        for n in reversed(forward):
            if n.output[0] not in sums:
                continue
            given = self.total(sums.pop(n.output[0]))
            rule = RULES.get(n.op_type)
            if rule is None:
                raise ExportError(f"{n.op_type} has no rule for reverse mode; supported are {', '.join(sorted(RULES))}")
            for name, part in rule(self, n, given):
                if name in self.active:
                    sums[name].append(part)
        return self.total(sums[self.wrt])

    def total(self, parts: list[str]) -> str:
        out = parts[0]
        for part in parts[1:]:
            out = self.add("Add", out, part)
        return out

    def name(self) -> str:
        self.count += 1
        return f"reverse_{self.count}"

    def add(self, op: str, *inputs: str, **attributes: object) -> str:
        out = self.name()
        self.graph.node.append(helper.make_node(op, list(inputs), [out], **attributes))
        return out

    def constant(self, value: object) -> str:
        out = self.name()
        self.graph.initializer.append(numpy_helper.from_array(np.asarray(value), out))
        return out

    def where(self, condition: str, given: str) -> str:
        """given where the condition holds, else 0."""
        return self.add("Where", condition, given, self.zero)

    def channels(self, name: str) -> int:
        """Number of channels of a value."""
        return self.ports[name].type.tensor_type.shape.dim[1].dim_value


def _attributes(n: NodeProto) -> dict:
    return {a.name: helper.get_attribute_value(a) for a in n.attribute}


Rule = Callable[[_Reverse, NodeProto, str], list[tuple[str, str]]]


def _conv(r: _Reverse, n: NodeProto, given: str) -> list[tuple[str, str]]:
    a = _attributes(n)
    kernel, strides, pads = a["kernel_shape"], a["strides"], a["pads"]
    # Sides are multiples of the stride: this many pixels at the end have no output of their own.
    rest = [(pads[i] + pads[i + 2] - k) % s for i, (k, s) in enumerate(zip(kernel, strides))]
    return [(n.input[0], r.add("ConvTranspose", given, n.input[1], kernel_shape=kernel, strides=strides, pads=pads, output_padding=rest, group=a.get("group", 1)))]  # fmt: skip


def _conv_transpose(r: _Reverse, n: NodeProto, given: str) -> list[tuple[str, str]]:
    a = _attributes(n)
    return [(n.input[0], r.add("Conv", given, n.input[1], kernel_shape=a["kernel_shape"], strides=a["strides"], pads=a["pads"], group=a.get("group", 1)))]  # fmt: skip


def _relu(r: _Reverse, n: NodeProto, given: str) -> list[tuple[str, str]]:
    return [(n.input[0], r.where(r.add("Greater", n.input[0], r.zero), given))]


def _leaky_relu(r: _Reverse, n: NodeProto, given: str) -> list[tuple[str, str]]:
    slope = r.constant(np.float32(_attributes(n).get("alpha", 0.01)))
    positive = r.add("Greater", n.input[0], r.zero)
    return [(n.input[0], r.add("Where", positive, given, r.add("Mul", given, slope)))]


def _tanh(r: _Reverse, n: NodeProto, given: str) -> list[tuple[str, str]]:
    lost = r.add("Mul", given, r.add("Mul", n.output[0], n.output[0]))
    return [(n.input[0], r.add("Sub", given, lost))]


def _clip(r: _Reverse, n: NodeProto, given: str) -> list[tuple[str, str]]:
    inside = r.add("And", r.add("GreaterOrEqual", n.input[0], n.input[1]), r.add("LessOrEqual", n.input[0], n.input[2]))
    return [(n.input[0], r.where(inside, given))]


def _sum(r: _Reverse, n: NodeProto, given: str) -> list[tuple[str, str]]:
    _same_shape(r, n)
    second = r.add("Neg", given) if n.op_type == "Sub" and n.input[1] in r.active else given
    return [(n.input[0], given), (n.input[1], second)]


def _product(r: _Reverse, n: NodeProto, given: str) -> list[tuple[str, str]]:
    _same_shape(r, n)
    if n.op_type == "Div":
        if n.input[1] in r.active:
            raise ExportError("Div by a value that depends on the image has no rule for reverse mode")
        return [(n.input[0], r.add("Div", given, n.input[1]))]
    return [(n.input[k], r.add("Mul", given, n.input[1 - k])) for k in (0, 1) if n.input[k] in r.active]


def _same_shape(r: _Reverse, n: NodeProto) -> None:
    """Refuses broadcasting, except of constants with one element."""
    for name in n.input:
        if name not in r.active and r.constants.get(name, np.empty(2)).size != 1:
            raise ExportError(f"{n.op_type} with {name} has no rule for reverse mode")


def _concat(r: _Reverse, n: NodeProto, given: str) -> list[tuple[str, str]]:
    out, at = [], 0
    axis = r.constant(np.array([1]))
    for name in n.input:
        end = at + r.channels(name)
        if name in r.active:
            out.append((name, r.add("Slice", given, r.constant(np.array([at])), r.constant(np.array([end])), axis)))
        at = end
    return out


def _depth_to_space(r: _Reverse, n: NodeProto, given: str) -> list[tuple[str, str]]:
    """The inverse of PyTorch's pixel shuffle: SpaceToDepth orders channels by the position in the
    block first, the shuffle by the channel first."""
    block, channels = _attributes(n)["blocksize"], r.channels(n.output[0])
    deep = r.add("SpaceToDepth", given, blocksize=block)
    order = np.arange(block * block * channels).reshape(block * block, channels).T.reshape(-1)
    return [(n.input[0], r.add("Gather", deep, r.constant(order), axis=1))]


RULES: dict[str, Rule] = {
    "Add": _sum, "Clip": _clip, "Concat": _concat, "Conv": _conv, "ConvTranspose": _conv_transpose, "DepthToSpace": _depth_to_space,
    "Div": _product, "LeakyRelu": _leaky_relu, "Mul": _product, "Relu": _relu, "Sub": _sum, "Tanh": _tanh,
    "Identity": lambda r, n, given: [(n.input[0], given)],
}  # fmt: skip
