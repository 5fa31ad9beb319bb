package modelfile_test

import (
	"errors"
	"strings"
	"testing"

	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/internal/restore/onnx/onnxpb"
)

// inBranch returns a node whose first branch has the nodes.
func inBranch(nodes ...*onnxpb.NodeProto) *onnxpb.NodeProto {
	n := nodeOf("If", nil, "y", "k")
	n.Attribute = []*onnxpb.AttributeProto{{Name: "then_branch", Type: onnxpb.AttributeProto_GRAPH, G: &onnxpb.GraphProto{Node: nodes}}}
	return n
}

// TestBiases: a normalisation without a bias is read with one of zeros, also in a branch, and one with a bias as it is.
func TestBiases(t *testing.T) {
	t.Parallel()
	for inputs, want := range map[string]string{
		"x wide": "Sub wide wide, LayerNormalization x wide n/zeros", "x wide ": "Sub wide wide, LayerNormalization x wide n/zeros",
		"x wide k": "LayerNormalization x wide k", "x": "LayerNormalization x",
	} {
		norm := func() *onnxpb.NodeProto { return nodeOf("LayerNormalization", nil, "n", strings.Split(inputs, " ")...) }
		m, err := modelfile.ReadModel(hostile(t, norm(), inBranch(norm())))
		must(t, err)
		nodes := m.Proto().Graph.Node
		last := len(nodes) - 1
		for _, of := range [][]*onnxpb.NodeProto{nodes[:last], nodes[last].Attribute[0].G.Node} {
			var got []string
			for _, n := range of {
				got = append(got, n.OpType+" "+strings.Join(n.Input, " "))
			}
			if got := strings.Join(got, ", "); got != want {
				t.Errorf("%q: nodes %s, want %s", inputs, got, want)
			}
		}
	}
}

// TestNodesThatEnd: nodes at which ONNX Runtime ends the process are refused, also in a branch.
func TestNodesThatEnd(t *testing.T) {
	t.Parallel()
	attention := nodeOf("Attention", nil, "y", "x", "wide", "")
	attention.Domain = "com.microsoft"
	split := nodeOf("Split", nil, "y", "x", "k")
	split.Output = append(split.Output, "")
	for want, n := range map[string]*onnxpb.NodeProto{
		"input 2 has no name": nodeOf("Sum", nil, "y", "x", ""), "output 2 has no name": split, "it has no bias": attention,
	} {
		for _, n := range []*onnxpb.NodeProto{n, inBranch(n)} {
			if _, err := modelfile.ReadModel(hostile(t, n)); !errors.Is(err, modelfile.ErrModel) || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %q", err, want)
			}
		}
	}
}
