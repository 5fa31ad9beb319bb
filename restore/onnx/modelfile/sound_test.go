package modelfile

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"ddiff/restore/onnx/onnxpb"
)

// chain returns a model of n nodes, each of which reads the output of the one before.
func chain(n int) *Model {
	g := &onnxpb.GraphProto{
		Input: []*onnxpb.ValueInfoProto{{Name: "0"}}, Output: []*onnxpb.ValueInfoProto{{Name: fmt.Sprint(n)}},
	}
	for i := range n {
		g.Node = append(g.Node, &onnxpb.NodeProto{OpType: "Add", Input: []string{fmt.Sprint(i), fmt.Sprint(i), ""}, Output: []string{fmt.Sprint(i + 1)}})
	}
	return &Model{proto: &onnxpb.ModelProto{Graph: g}}
}

// TestSoundInAnyOrder: the order of the nodes decides neither the answer nor the time.
func TestSoundInAnyOrder(t *testing.T) {
	t.Parallel()
	m := chain(100_000)
	slices.Reverse(m.proto.Graph.Node)
	start := time.Now()
	if err := m.Sound(); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("reversed nodes took %v", took)
	}
	nodes := m.proto.Graph.Node
	nodes[50_000].Input[1] = "100000"
	if err := m.Sound(); !errors.Is(err, ErrModel) {
		t.Errorf("a cycle: %v", err)
	}
	nodes[50_000].Input[1] = "nowhere"
	if err := m.Sound(); !errors.Is(err, ErrModel) {
		t.Errorf("an undefined input: %v", err)
	}
	twice := chain(3)
	twice.proto.Graph.Node = append(twice.proto.Graph.Node, &onnxpb.NodeProto{OpType: "Neg", Input: []string{"0"}, Output: []string{"1"}})
	if err := twice.Sound(); err != nil {
		t.Errorf("a value that two nodes make: %v", err)
	}
}
