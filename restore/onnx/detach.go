package onnx

import (
	"strings"

	"ddiff/internal/restore/onnx/onnxpb"
)

// detached begins the names of the nodes that Detach adds.
const detached = "Detached"

// Detach returns a copy of v that Gradient treats as a constant.
func (g *Graph) Detach(v Value) Value {
	out := g.declare(g.fresh(detached), v.DType, v.Dims)
	g.record("Identity", nil, []Value{v}, []Value{out})
	return out
}

// isDetached reports whether Detach added the node. Nodes of inlined models have names with other beginnings.
func isDetached(n *onnxpb.NodeProto) bool {
	return n.OpType == "Identity" && strings.HasPrefix(n.Name, detached+"_")
}
