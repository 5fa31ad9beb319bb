package onnx

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"

	"ddiff/restore/onnx/onnxpb"
)

// ErrNoGradient: a node between x and y has no gradient rule.
var ErrNoGradient = errors.New("operation has no gradient rule")

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

// standard reports whether an operation is one of the default domain.
func standard(n *onnxpb.NodeProto) bool { return n.Domain == "" || n.Domain == "ai.onnx" }

// inlinedName is the beginning that Inline adds to names.
var inlinedName = regexp.MustCompile(`^m_\d+/`)

// nameOf returns a node's name in its file, or that of its first output.
func nameOf(n *onnxpb.NodeProto) string {
	return inlinedName.ReplaceAllString(cmp.Or(n.Name, cmp.Or(n.Output...)), "")
}
