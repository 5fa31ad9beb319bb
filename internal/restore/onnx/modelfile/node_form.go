package modelfile

import (
	"cmp"
	"fmt"
	"slices"

	"ddiff/internal/restore/onnx/onnxpb"
)

// leastInputs are the numbers of inputs without which an operation means nothing, of those whose inputs the package reads by position.
var leastInputs = func() map[string]int {
	out := map[string]int{"InstanceNormalization": 3, "Reshape": 2, "Mul": 2, "Add": 2, "Where": 3, "Sigmoid": 1, "Cast": 1}
	for op := range reduced {
		out[op] = 1
	}
	return out
}()

// variadic are operations of any number of inputs, of which none may be left out: ONNX Runtime 1.30 ends the process at those of Einsum, Mean and Sum.
var variadic = words("Concat Einsum Max Mean Min Sum")

// checkNodes returns an error that wraps ErrModel for a node of a graph, or of its sub-graphs, that has no named output, has fewer inputs than its
// operation must have, or is one at which ONNX Runtime ends the process.
func checkNodes(g *onnxpb.GraphProto) error {
	for _, n := range g.GetNode() {
		if err := checkNode(n); err != nil {
			return fmt.Errorf("read node %s: %w: %w", nodeName(n), ErrModel, err)
		}
		for _, inner := range subGraphs(n) {
			if err := checkNodes(inner); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkNode(n *onnxpb.NodeProto) error {
	least := leastInputs[n.OpType]
	switch {
	case cmp.Or(n.Output...) == "":
		return fmt.Errorf("it has no output")
	case len(n.Input) < least:
		return fmt.Errorf("it has %d inputs, want %d", len(n.Input), least)
	case variadic[n.OpType] && slices.Contains(n.Input, ""):
		return fmt.Errorf("input %d has no name; export the model without it", slices.Index(n.Input, "")+1)
	case n.OpType == "Split" && slices.Contains(n.Output, ""):
		return fmt.Errorf("output %d has no name; export the model with one", slices.Index(n.Output, "")+1)
	case n.OpType == "Attention" && n.Domain == contributed && !has(n, 2):
		return fmt.Errorf("it has no bias, which the CPU needs; export the model with a bias of zeros")
	}
	return nil
}

// has reports whether a node has input i.
func has(n *onnxpb.NodeProto, i int) bool { return len(n.Input) > i && n.Input[i] != "" }

// subGraphs returns the graphs inside a node.
func subGraphs(n *onnxpb.NodeProto) []*onnxpb.GraphProto {
	var out []*onnxpb.GraphProto
	for _, a := range n.Attribute {
		out = append(append(out, a.Graphs...), a.G)
	}
	return out
}

// addBiases gives each LayerNormalization of a graph and its sub-graphs that has no bias one of zeros, the difference of its scale and itself. ONNX Runtime 1.30 ends the process
// at one that has an empty name (IsSupportedDataType in its skip_layer_norm_fusion.cc), and keeps the address of a local variable for one that is left out.
func addBiases(g *onnxpb.GraphProto) {
	if g == nil {
		return
	}
	nodes := make([]*onnxpb.NodeProto, 0, len(g.Node))
	for _, n := range g.Node {
		for _, inner := range subGraphs(n) {
			addBiases(inner)
		}
		if n.OpType == "LayerNormalization" && has(n, 1) && !has(n, 2) {
			zeros := cmp.Or(n.Output...) + "/zeros"
			nodes = append(nodes, &onnxpb.NodeProto{OpType: "Sub", Input: []string{n.Input[1], n.Input[1]}, Output: []string{zeros}})
			n.Input = append(n.Input[:2:2], zeros)
		}
		nodes = append(nodes, n)
	}
	g.Node = nodes
}
