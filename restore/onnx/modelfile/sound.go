package modelfile

import (
	"fmt"

	"ddiff/restore/onnx/onnxpb"
)

// Sound returns an error that wraps ErrModel if a node of the main graph reads a value that nothing defines, or if nodes
// form a cycle. It does not run the model: operators that ONNX Runtime lacks and shapes that do not fit appear when a
// session is made.
func (m *Model) Sound() error {
	g := m.proto.Graph
	defined, made := map[string]bool{"": true}, m.computed()
	for _, t := range g.Initializer {
		defined[t.Name] = true
	}
	for _, v := range g.Input {
		defined[v.Name] = true
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
	return acyclic(g.Node, defined)
}

// acyclic returns an error that wraps ErrModel if nodes form a cycle. Each of their inputs is in defined or an output of a
// node. The time is linear in any order of the nodes: a file of a few megabytes has a hundred thousand of them.
func acyclic(nodes []*onnxpb.NodeProto, defined map[string]bool) error {
	missing, readers := make([]int, len(nodes)), map[string][]int{}
	var ready []int
	for i, n := range nodes {
		for _, in := range n.Input {
			if !defined[in] {
				missing[i]++
				readers[in] = append(readers[in], i)
			}
		}
		if missing[i] == 0 {
			ready = append(ready, i)
		}
	}
	for len(ready) > 0 {
		n := nodes[ready[len(ready)-1]]
		ready = ready[:len(ready)-1]
		for _, out := range n.Output {
			for _, i := range readers[out] {
				if missing[i]--; missing[i] == 0 {
					ready = append(ready, i)
				}
			}
			delete(readers, out)
		}
	}
	for i, n := range nodes {
		if missing[i] > 0 {
			return fmt.Errorf("read node %s: %w: its inputs depend on its output", nodeName(n), ErrModel)
		}
	}
	return nil
}

// nodeName describes a node in messages.
func nodeName(n *onnxpb.NodeProto) string { return fmt.Sprintf("%q (%s)", n.Name, n.OpType) }
