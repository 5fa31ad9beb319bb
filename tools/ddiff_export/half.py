"""Converts ONNX graphs to half precision; inputs and outputs stay in float.

Values that depend on the images are computed in half precision by the operations of GAINING,
and of FOLLOWING if an input is in half precision. All other values stay in float: normalisations
with their scale and shift, softmax, reductions, and values that depend on the time only. Casts
are inserted between the two.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from .errors import ExportError

FLOAT, HALF = TensorProto.FLOAT, TensorProto.FLOAT16
LARGEST = 65504.0

# Operations that run in half precision for any type of their inputs: they get faster.
GAINING = {"Conv", "ConvTranspose", "MatMul", "Gemm", "Sigmoid", "Relu", "LeakyRelu", "Tanh", "AveragePool", "MaxPool"}
# Operations that use the type of their inputs; mixed inputs are converted to half precision.
FOLLOWING = {
    "Add", "Sub", "Mul", "Div", "Concat", "Reshape", "Transpose", "Slice", "Split", "Squeeze", "Unsqueeze",
    "Expand", "Identity", "Gather", "DepthToSpace", "SpaceToDepth", "Flatten", "Resize", "Pad", "Clip",
}  # fmt: skip
# Inputs that are never converted, by index.
FIXED = {"Resize": {1, 2, 3}}
INTEGERS = {"Shape", "Size", "ArgMax", "ArgMin", "NonZero"}
LOGICAL = {"Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual", "And", "Or", "Not"}


def convert(model: ModelProto) -> None:
    """Converts the model in place. Raises ExportError for a weight outside the range of half precision."""
    _Pass(model).run()


class _Pass:
    def __init__(self, model: ModelProto) -> None:
        self.graph = model.graph
        self.constants = {t.name: t for t in self.graph.initializer}
        for node in self.graph.node:
            if node.op_type == "Constant" and node.attribute[0].name == "value":
                self.constants[node.output[0]] = node.attribute[0].t
        self.kind: dict[str, int] = {name: t.data_type for name, t in self.constants.items()}
        self.image: set[str] = set()  # values that depend on an image
        for port in self.graph.input:
            tensor = port.type.tensor_type
            self.kind[port.name] = tensor.elem_type
            if len(tensor.shape.dim) == 4:
                self.image.add(port.name)
        self.statistics: set[str] = set()  # results of reductions
        self.casts: dict[tuple[str, int], str] = {}
        self.nodes: list[NodeProto] = []

    def run(self) -> None:
        for node in self.graph.node:
            self._node(node)
        for port in self.graph.output:
            if self.kind[port.name] == HALF:
                self._restore(port.name)
        del self.graph.node[:]
        self.graph.node.extend(self.nodes)
        self._drop_unused()

    def _node(self, node: NodeProto) -> None:
        op = node.op_type
        fixed = FIXED.get(op, set())
        floats = [i for i, v in enumerate(node.input) if i not in fixed and self.kind.get(v) in (FLOAT, HALF)]
        moving = [node.input[i] for i in floats if node.input[i] in self.image]
        result = self._result(node, floats)
        if moving:
            self.image.update(node.output)
        want = FLOAT
        if moving and op in GAINING:
            want = HALF
        elif moving and op in FOLLOWING and any(self.kind[v] == HALF for v in moving):
            want = FLOAT if self.statistics.intersection(moving) else HALF
        if op.startswith("Reduce"):
            self.statistics.update(node.output)
        if op == "Cast":
            self.nodes.append(node)
        else:
            copy = NodeProto()
            copy.CopyFrom(node)
            for i in floats:
                copy.input[i] = self._as(node.input[i], want)
            self.nodes.append(copy)
            if result == FLOAT and op not in ("Constant", "ConstantOfShape"):
                result = want
        for name in node.output:
            self.kind[name] = result

    def _result(self, node: NodeProto, floats: list[int]) -> int:
        """The element type of the node's result, before any conversion."""
        op = node.op_type
        if op in INTEGERS:
            return TensorProto.INT64
        if op in LOGICAL:
            return TensorProto.BOOL
        for attribute in node.attribute:
            if op == "Cast" and attribute.name == "to":
                return attribute.i
            if op in ("Constant", "ConstantOfShape") and attribute.name == "value":
                return attribute.t.data_type
        if op == "ConstantOfShape":
            return FLOAT
        at = 1 if op == "Where" else 0
        if floats and floats[0] <= at:
            return FLOAT
        return self.kind.get(node.input[at], 0) if len(node.input) > at else 0

    def _as(self, name: str, want: int) -> str:
        """The name of the value in the wanted type; adds a Cast or a converted constant if needed."""
        if self.kind[name] == want:
            return name
        if (name, want) in self.casts:
            return self.casts[name, want]
        other = f"{name}.{'half' if want == HALF else 'float'}"
        if want == HALF and name in self.constants:
            values = numpy_helper.to_array(self.constants[name])
            if values.size and float(np.abs(values).max()) > LARGEST:
                raise ExportError(f"--float16: {name} has values beyond {LARGEST:g}; export without --float16")
            self.graph.initializer.append(numpy_helper.from_array(values.astype(np.float16), other))
        else:
            self.nodes.append(helper.make_node("Cast", [name], [other], to=want))
        self.kind[other] = want
        if name in self.image:
            self.image.add(other)
        self.casts[name, want] = other
        return other

    def _restore(self, name: str) -> None:
        """Converts an output of the graph back to float under its name."""
        inner = name + ".inner"
        for node in self.nodes:
            for names in (node.input, node.output):
                for i, v in enumerate(names):
                    if v == name:
                        names[i] = inner
        self.nodes.append(helper.make_node("Cast", [inner], [name], to=FLOAT))

    def _drop_unused(self) -> None:
        uses: dict[str, int] = defaultdict(int)
        for node in self.graph.node:
            for name in node.input:
                uses[name] += 1
        kept = [t for t in self.graph.initializer if uses[t.name]]
        del self.graph.initializer[:]
        self.graph.initializer.extend(kept)
        nodes = [n for n in self.graph.node if n.op_type != "Constant" or uses[n.output[0]]]
        del self.graph.node[:]
        self.graph.node.extend(nodes)
