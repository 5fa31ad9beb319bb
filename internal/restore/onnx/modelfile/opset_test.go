package modelfile

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/restore/onnx/infer"
	"ddiff/internal/restore/onnx/onnxpb"
)

// matrix describes a float value of two dimensions.
func matrix(name string, dims ...int64) *onnxpb.ValueInfoProto {
	shape := &onnxpb.TensorShapeProto{}
	for _, d := range dims {
		shape.Dim = append(shape.Dim, &onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: d}})
	}
	return &onnxpb.ValueInfoProto{Name: name, Type: &onnxpb.TypeProto{TensorType: &onnxpb.TypeProto_Tensor{ElemType: int32(infer.Float), Shape: shape}}}
}

// reductions is a model with a mean over the last axis and a division into two equal parts, in an operator set.
func reductions(opset int) *Model {
	mean := &onnxpb.NodeProto{Name: "mean", OpType: "ReduceMean", Input: []string{"x"}, Output: []string{"m"}}
	split := &onnxpb.NodeProto{Name: "split", OpType: "Split", Input: []string{"x"}, Output: []string{"a", "b"}}
	g := &onnxpb.GraphProto{
		Input:  []*onnxpb.ValueInfoProto{matrix("x", 4, 6)},
		Output: []*onnxpb.ValueInfoProto{matrix("m", 4, 1), matrix("b", 2, 6)},
		Node:   []*onnxpb.NodeProto{mean, split},
	}
	if opset < axesAsInput {
		mean.Attribute = infer.EncodeAttributes(map[string]any{"axes": []int{-1}})
	} else {
		mean.Input = append(mean.Input, "axes")
		g.Initializer = []*onnxpb.TensorProto{{Name: "axes", DataType: int32(infer.Int64), Dims: []int64{1}, RawData: infer.IntBytes([]int{-1})}}
		split.Attribute = infer.EncodeAttributes(map[string]any{"num_outputs": 2})
	}
	return &Model{proto: &onnxpb.ModelProto{IrVersion: 8, Graph: g, OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: int64(opset)}}}}
}

// TestConvert moves a model over the set in which reductions and Split changed, in both directions and back.
func TestConvert(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ from, to int }{{17, 18}, {18, 17}, {13, 22}, {22, 13}, {16, 16}} {
		got, err := reductions(c.from).Convert(c.to)
		if err != nil {
			t.Fatalf("%d to %d: %v", c.from, c.to, err)
		}
		want := reductions(c.to)
		if got.Opset() != c.to {
			t.Errorf("%d to %d: set %d", c.from, c.to, got.Opset())
		}
		for i, n := range got.proto.Graph.Node {
			w := want.proto.Graph.Node[i]
			if len(n.Input) != len(w.Input) || len(n.Attribute) != len(w.Attribute) {
				t.Errorf("%d to %d: node %v, want %v", c.from, c.to, n, w)
				continue
			}
			for k, a := range n.Attribute {
				if b := w.Attribute[k]; a.Name != b.Name || a.I != b.I || !slices.Equal(a.Ints, b.Ints) {
					t.Errorf("%d to %d: attribute %v, want %v", c.from, c.to, a, b)
				}
			}
			if len(n.Input) > 1 {
				if axes, _ := got.facts(nil).IntegersOf(infer.Value{Name: n.Input[1]}); !slices.Equal(axes, []int{-1}) {
					t.Errorf("%d to %d: axes %v", c.from, c.to, axes)
				}
			}
		}
	}
}

func TestConvertRefusals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		op     string
		inputs []string
		attrs  map[string]any
		from   int
		to     int
		want   string
	}{
		"new operation":     {"Gelu", []string{"x"}, nil, 20, 17, `node "n" (Gelu) from operator set 20 to 17: unusable ONNX model: it is new in set 20`},
		"unknown operation": {"GridSample", []string{"x", "x"}, nil, 17, 20, "its meaning may differ"},
		"new attribute":     {"Resize", []string{"x"}, map[string]any{"antialias": 1}, 18, 16, "its attribute antialias is new in set 18"},
		"axes of a pad":     {"Pad", []string{"x", "p", "", "a"}, nil, 18, 17, "it names axes"},
		"no axes":           {"ReduceMax", []string{"x"}, map[string]any{"noop_with_empty_axes": 1}, 18, 17, "it reduces no axes, which is new in set 18"},
		"variable axes":     {"ReduceMax", []string{"x", "a"}, nil, 18, 17, "its axes are not constant"},
	} {
		m := &Model{proto: &onnxpb.ModelProto{
			Graph:       &onnxpb.GraphProto{Node: []*onnxpb.NodeProto{{Name: "n", OpType: c.op, Input: c.inputs, Output: []string{"y"}, Attribute: infer.EncodeAttributes(c.attrs)}}},
			OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: int64(c.from)}},
		}}
		if _, err := m.Convert(c.to); !errors.Is(err, ErrModel) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
	other := &Model{proto: &onnxpb.ModelProto{
		Graph:       &onnxpb.GraphProto{Node: []*onnxpb.NodeProto{{OpType: "Own", Domain: "com.example", Output: []string{"y"}}, {OpType: "Gelu", Input: []string{"y"}, Output: []string{"z"}}}},
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 20}},
	}}
	if _, err := other.Convert(22); err != nil {
		t.Errorf("operations that are known since set 20, and of another domain: %v", err)
	}
}
