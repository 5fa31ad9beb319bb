package modelfile

import (
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"

	"ddiff/internal/restore/onnx/onnxpb"
)

// A reference to another file, which could be any file of the machine, is refused wherever it occurs.
func TestReadModelRefusesOtherFiles(t *testing.T) {
	elsewhere := &onnxpb.TensorProto{
		Name: "w", DataLocation: onnxpb.TensorProto_EXTERNAL,
		ExternalData: []*onnxpb.StringStringEntryProto{{Key: "location", Value: "../../etc/passwd"}},
	}
	node := func(a *onnxpb.AttributeProto) *onnxpb.GraphProto {
		return &onnxpb.GraphProto{Node: []*onnxpb.NodeProto{{OpType: "If", Output: []string{"y"}, Attribute: []*onnxpb.AttributeProto{a}}}}
	}
	inner := &onnxpb.GraphProto{Node: []*onnxpb.NodeProto{{OpType: "Identity", Input: []string{"w"}, Output: []string{"y"}}}, Initializer: []*onnxpb.TensorProto{elsewhere}}
	for name, g := range map[string]*onnxpb.GraphProto{
		"initializer":       inner,
		"attribute":         node(&onnxpb.AttributeProto{Name: "value", T: elsewhere}),
		"attribute of many": node(&onnxpb.AttributeProto{Name: "values", Tensors: []*onnxpb.TensorProto{elsewhere}}),
		"branch":            node(&onnxpb.AttributeProto{Name: "then_branch", G: inner}),
		"branch of many":    node(&onnxpb.AttributeProto{Name: "branches", Graphs: []*onnxpb.GraphProto{inner}}),
		"constant in a branch": node(&onnxpb.AttributeProto{
			Name: "then_branch", G: node(&onnxpb.AttributeProto{Name: "value", T: elsewhere}),
		}),
	} {
		data, err := proto.Marshal(&onnxpb.ModelProto{Graph: g})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ReadModel(data); !errors.Is(err, ErrModel) {
			t.Errorf("%s: error %v, want ErrModel", name, err)
		}
	}
	sparse := [][]byte{{1}}
	one, many := &onnxpb.AttributeProto{SparseTensor: sparse[0]}, &onnxpb.AttributeProto{SparseTensors: sparse}
	initializer := &onnxpb.GraphProto{Node: inner.Node, SparseInitializer: sparse}
	plain := node(&onnxpb.AttributeProto{Name: "value", T: &onnxpb.TensorProto{Name: "w"}})
	nested := func(n int) *onnxpb.GraphProto {
		g := plain
		for range n {
			g = node(&onnxpb.AttributeProto{Name: "then_branch", G: g})
		}
		return g
	}
	for name, m := range map[string]*onnxpb.ModelProto{
		"deep sub-graphs":    {Graph: nested(maxSubgraphs + 1)},
		"sparse attribute":   {Graph: node(one)},
		"sparse attributes":  {Graph: node(many)},
		"sparse initializer": {Graph: initializer},
		"sparse in a branch": {Graph: node(&onnxpb.AttributeProto{Name: "then_branch", G: initializer})},
		"function":           {Graph: plain, Functions: [][]byte{{}}},
	} {
		data, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ReadModel(data); !errors.Is(err, ErrModel) {
			t.Errorf("%s: error %v, want ErrModel", name, err)
		}
	}
	data, err := proto.Marshal(&onnxpb.ModelProto{Graph: nested(maxSubgraphs)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ReadModel(data); err != nil {
		t.Errorf("a model of one file: %v", err)
	}
}
