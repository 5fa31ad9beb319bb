package modelfile_test

import (
	"fmt"
	"runtime/debug"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"ddiff/internal/fuzztest"
	"ddiff/internal/restore/onnx/infer"
	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/internal/restore/onnx/onnxpb"
)

// hostile returns a model of nodes, with x of [2, 3], the integers k and the shape [60000].
func hostile(t *testing.T, nodes ...*onnxpb.NodeProto) []byte {
	t.Helper()
	dim := func(n int64) *onnxpb.TensorShapeProto_Dimension {
		return &onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: n}}
	}
	data, err := proto.Marshal(&onnxpb.ModelProto{OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 18}}, Graph: &onnxpb.GraphProto{
		Input: []*onnxpb.ValueInfoProto{{Name: "x", Type: &onnxpb.TypeProto{TensorType: &onnxpb.TypeProto_Tensor{
			ElemType: int32(infer.Float), Shape: &onnxpb.TensorShapeProto{Dim: []*onnxpb.TensorShapeProto_Dimension{dim(2), dim(3)}},
		}}}},
		Initializer: []*onnxpb.TensorProto{
			{Name: "k", DataType: int32(infer.Int64), Dims: []int64{2, 1}, RawData: infer.IntBytes([]int{0, 1})},
			{Name: "long", DataType: int32(infer.Int64), Dims: []int64{1}, RawData: infer.IntBytes([]int{60000})},
			{Name: "wide", DataType: int32(infer.Float), Dims: []int64{32, 3, 3, 3}},
		},
		Node: nodes,
	}})
	must(t, err)
	return data
}

func nodeOf(op string, attrs map[string]any, out string, inputs ...string) *onnxpb.NodeProto {
	return &onnxpb.NodeProto{OpType: op, Input: inputs, Output: []string{out}, Attribute: infer.EncodeAttributes(attrs)}
}

// TestHostileModels: nodes without the inputs and outputs of their operations, and small files of which shapes would need any memory, are
// refused or not understood.
func TestHostileModels(t *testing.T) {
	models := map[string][]*onnxpb.NodeProto{
		"no output":          {{OpType: "Neg", Input: []string{"x"}}},
		"unnamed output":     {nodeOf("Neg", nil, "", "x")},
		"strides":            {nodeOf("Conv", map[string]any{"strides": []int{1 << 32, 1 << 32}}, "y", "x", "wide")},
		"parts":              {nodeOf("Split", map[string]any{"num_outputs": 1 << 28}, "y", "x")},
		"mean without input": {nodeOf("ReduceMean", nil, "y")},
	}
	for _, op := range []string{"InstanceNormalization", "Reshape", "Mul", "Add", "Cast", "Conv", "Sigmoid", "Where", "Split", "ReduceMean", "Resize"} {
		models[op] = []*onnxpb.NodeProto{nodeOf(op, nil, "y"), nodeOf("InstanceNormalization", nil, "n", "y", "x", "x"), nodeOf("Cast", nil, "c", "y"), nodeOf("Conv", nil, "w", "x", "c")}
	}
	// Each Gather of a value by itself doubles the number of dimensions.
	previous := "k"
	for i := range 40 {
		name := fmt.Sprint("rank", i)
		models["dimensions"] = append(models["dimensions"], nodeOf("Gather", nil, name, previous, previous))
		previous = name
	}
	// Each value has 480,000 bytes, and the last one is a shape.
	chain := []*onnxpb.NodeProto{nodeOf("ConstantOfShape", nil, "v0", "long")}
	for i := range 4000 {
		chain = append(chain, nodeOf("Add", nil, fmt.Sprint("v", i+1), fmt.Sprint("v", i), fmt.Sprint("v", i)))
	}
	models["values"] = append(chain, nodeOf("Cast", map[string]any{"to": int(infer.Int64)}, "shape", "v4000"), nodeOf("Expand", nil, "y", "x", "shape"))
	for name, nodes := range models {
		data := hostile(t, nodes...)
		m, err := modelfile.ReadModel(data)
		if err != nil {
			continue
		}
		t.Log(name)
		fuzztest.Limit(t, 256<<20, func() {
			_, err = m.Types(nil)
			must(t, err)
			m.Width(3)
			m.FuseGroupNorm()
			m.Half()
			for opset := 13; opset < 22; opset++ {
				_, _ = m.Convert(opset)
			}
		})
	}
}

// TestHostileDepth: a value that depends on another through many nodes does not use up the stack, and all are understood in time, also
// if the first node is not. The nodes of a file may be in any order.
func TestHostileDepth(t *testing.T) {
	const length = 60_000
	defer debug.SetMaxStack(debug.SetMaxStack(48 << 20))
	for _, first := range []string{"Identity", "Unheard"} {
		chain := make([]*onnxpb.NodeProto, length)
		for i := range chain {
			chain[i] = nodeOf("Identity", nil, fmt.Sprint(i+1), fmt.Sprint(i))
		}
		chain[0] = nodeOf(first, nil, "1", "k")
		slices.Reverse(chain)
		m, err := modelfile.ReadModel(hostile(t, append(chain, nodeOf("Expand", nil, "y", "x", fmt.Sprint(length)))...))
		must(t, err)
		fuzztest.Limit(t, 1<<30, func() { _, err = m.Types(nil) })
		must(t, err)
	}
}
