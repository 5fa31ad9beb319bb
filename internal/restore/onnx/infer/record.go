package infer

import (
	"cmp"
	"fmt"
	"regexp"

	"ddiff/internal/failure"
	"ddiff/internal/restore/onnx/onnxpb"
)

// ErrNoGradient: a node between x and y has no gradient rule.
var ErrNoGradient = failure.New(failure.Prior, "operation has no gradient rule")

// Node is one operation with the types of its inputs and outputs, as the rules of reverse mode read it.
type Node struct {
	Op      string
	Name    string         // in messages
	Inputs  []Value        // the zero Value is an omitted optional input
	Outputs []Value        // the zero Value is an unused output
	Attrs   map[string]any // int, []int, float32, []float32, string or *onnxpb.TensorProto
}

// Input returns input i, or the zero Value if the node omits it.
func (n *Node) Input(i int) Value {
	if i >= len(n.Inputs) {
		return Value{}
	}
	return n.Inputs[i]
}

// Has reports whether the node has input i.
func (n *Node) Has(i int) bool { return n.Input(i).Name != "" }

// Integer returns an attribute, or its default.
func (n *Node) Integer(name string, otherwise int) int {
	if v, ok := n.Attrs[name].(int); ok {
		return v
	}
	return otherwise
}

// Integers returns an attribute, or nil.
func (n *Node) Integers(name string) []int {
	v, _ := n.Attrs[name].([]int)
	return v
}

// Float returns an attribute, or its default.
func (n *Node) Float(name string, otherwise float32) float32 {
	if v, ok := n.Attrs[name].(float32); ok {
		return v
	}
	return otherwise
}

// Text returns an attribute, or its default.
func (n *Node) Text(name, otherwise string) string {
	if v, ok := n.Attrs[name].(string); ok {
		return v
	}
	return otherwise
}

// Axis returns an axis in [0, rank) for one that may count from the end.
func Axis(a, rank int) int {
	if a < 0 {
		return a + rank
	}
	return a
}

// Refuse returns ErrNoGradient for a form of n that its rule does not cover.
func (n *Node) Refuse(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ErrNoGradient)
}

// Standard reports whether an operation is one of the default domain.
func Standard(n *onnxpb.NodeProto) bool { return n.Domain == "" || n.Domain == "ai.onnx" }

// inlinedName is the beginning that Inline adds to names.
var inlinedName = regexp.MustCompile(`^m_\d+/`)

// NodeName returns a node's name in its file, or that of its first output.
func NodeName(n *onnxpb.NodeProto) string {
	return inlinedName.ReplaceAllString(cmp.Or(n.Name, cmp.Or(n.Output...)), "")
}
