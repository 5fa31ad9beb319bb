package onnx

import (
	"fmt"
	"slices"

	"ddiff/restore/onnx/onnxpb"
)

// node is one operation with the types of its inputs and outputs, as the rules of reverse mode read it.
type node struct {
	op      string
	name    string         // in messages
	inputs  []Value        // the zero Value is an omitted optional input
	outputs []Value        // the zero Value is an unused output
	attrs   map[string]any // int, []int, float32, []float32, string or *onnxpb.TensorProto
}

// input returns input i, or the zero Value if the node omits it.
func (n *node) input(i int) Value {
	if i >= len(n.inputs) {
		return Value{}
	}
	return n.inputs[i]
}

// has reports whether the node has input i.
func (n *node) has(i int) bool { return n.input(i).Name != "" }

// integer returns an attribute, or its default.
func (n *node) integer(name string, otherwise int) int {
	if v, ok := n.attrs[name].(int); ok {
		return v
	}
	return otherwise
}

// integers returns an attribute, or nil.
func (n *node) integers(name string) []int {
	v, _ := n.attrs[name].([]int)
	return v
}

// float returns an attribute, or its default.
func (n *node) float(name string, otherwise float32) float32 {
	if v, ok := n.attrs[name].(float32); ok {
		return v
	}
	return otherwise
}

// text returns an attribute, or its default.
func (n *node) text(name, otherwise string) string {
	if v, ok := n.attrs[name].(string); ok {
		return v
	}
	return otherwise
}

// axis returns an axis in [0, rank) for one that may count from the end.
func axis(a, rank int) int {
	if a < 0 {
		return a + rank
	}
	return a
}

// refuse returns ErrNoGradient for a form of n that its rule does not cover.
func (n *node) refuse(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ErrNoGradient)
}

// typed decodes the attributes of a node from a file. Sub-graphs are left out.
func typed(attrs []*onnxpb.AttributeProto) map[string]any {
	out := map[string]any{}
	for _, a := range attrs {
		switch a.Type {
		case onnxpb.AttributeProto_INT:
			out[a.Name] = int(a.I)
		case onnxpb.AttributeProto_INTS:
			out[a.Name] = ints(a.Ints)
		case onnxpb.AttributeProto_FLOAT:
			out[a.Name] = a.F
		case onnxpb.AttributeProto_FLOATS:
			out[a.Name] = slices.Clone(a.Floats)
		case onnxpb.AttributeProto_STRING:
			out[a.Name] = string(a.S)
		case onnxpb.AttributeProto_TENSOR:
			out[a.Name] = a.T
		}
	}
	return out
}
