package onnx

import (
	"fmt"

	"ddiff/restore/onnx/onnxpb"
)

// Sound returns an error that wraps ErrModel if a node of the main graph reads a value that nothing defines, or if nodes
// form a cycle. It does not run the model: operators that ONNX Runtime lacks and shapes that do not fit appear when a
// session is made.
func (m *Model) Sound() error {
	g := m.proto.Graph
	defined, made := map[string]bool{"": true}, map[string]bool{}
	for _, t := range g.Initializer {
		defined[t.Name] = true
	}
	for _, v := range g.Input {
		defined[v.Name] = true
	}
	for _, n := range g.Node {
		for _, out := range n.Output {
			made[out] = true
		}
	}
	for _, n := range g.Node {
		for _, in := range n.Input {
			if !defined[in] && !made[in] {
				return fmt.Errorf("read node %s: %w: nothing defines its input %q", nodeName(n), ErrModel, in)
			}
		}
	}
	for _, v := range g.Output {
		if !defined[v.Name] && !made[v.Name] {
			return fmt.Errorf("read output %q: %w: nothing defines it", v.Name, ErrModel)
		}
	}
	// Files are sorted, except a few that programs edited: one pass is the rule.
	for rest := g.Node; len(rest) > 0; {
		var later []*onnxpb.NodeProto
		for _, n := range rest {
			if !ready(n, defined) {
				later = append(later, n)
				continue
			}
			for _, out := range n.Output {
				defined[out] = true
			}
		}
		if len(later) == len(rest) {
			return fmt.Errorf("read node %s: %w: its inputs depend on its output", nodeName(later[0]), ErrModel)
		}
		rest = later
	}
	return nil
}

func ready(n *onnxpb.NodeProto, defined map[string]bool) bool {
	for _, in := range n.Input {
		if !defined[in] {
			return false
		}
	}
	return true
}

// nodeName describes a node in messages.
func nodeName(n *onnxpb.NodeProto) string { return fmt.Sprintf("%q (%s)", n.Name, n.OpType) }
