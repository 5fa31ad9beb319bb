package gpuworker_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"ddiff/gpuworker/workertest"
	"ddiff/restore/onnx"
	"ddiff/restore/onnx/onnxpb"
	"ddiff/restore/prior"
)

// hungryPrior predicts a tenth of the image as noise, as the prior of engine does, and also computes a tensor of (factor·N)^20 zeros
// for a batch of N: with factor 1, a batch of two needs 4 MiB, and a batch of four exceeds the memory of any machine.
func hungryPrior(t *testing.T, factor int64) []byte {
	t.Helper()
	return hungryAlong(t, 0, 1, factor)
}

// hungryAlong is hungryPrior whose N is the size of x along an axis in units.
func hungryAlong(t *testing.T, axis, unit, factor int64) []byte {
	t.Helper()
	node := func(op, out string, in ...string) *onnxpb.NodeProto {
		return &onnxpb.NodeProto{OpType: op, Name: out, Input: in, Output: []string{out}}
	}
	scalar := func(name string, v float32) *onnxpb.TensorProto {
		return &onnxpb.TensorProto{Name: name, DataType: 1, FloatData: []float32{v}}
	}
	ints := func(name string, v ...int64) *onnxpb.TensorProto {
		return &onnxpb.TensorProto{Name: name, DataType: 7, Dims: []int64{int64(len(v))}, Int64Data: v}
	}
	m := &onnxpb.ModelProto{
		IrVersion: 8, OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: onnx.DefaultOpset}},
		Graph: &onnxpb.GraphProto{
			Name: "hungry",
			Node: []*onnxpb.NodeProto{
				node("Shape", "shape", "x"), node("Gather", "size", "shape", "first"), node("Div", "n", "size", "unit"), node("Mul", "m", "n", "factor"),
				node("Mul", "m2", "m", "m"), node("Mul", "m4", "m2", "m2"), node("Mul", "m5", "m4", "m"),
				node("Mul", "m10", "m5", "m5"), node("Mul", "m20", "m10", "m10"),
				// The tensor depends on x; otherwise it would be computed at compilation.
				node("ReduceSum", "sum", "x"), node("Expand", "many", "sum", "m20"), node("Mul", "zeros", "many", "zero"),
				node("ReduceSum", "nothing", "zeros"),
				node("Mul", "tenth", "x", "share"), node("Add", "eps", "tenth", "nothing"),
			},
			Initializer: []*onnxpb.TensorProto{
				ints("first", axis), ints("unit", unit), ints("factor", factor), scalar("share", 0.1), scalar("zero", 0),
			},
			Input:  []*onnxpb.ValueInfoProto{port("x", 1, -1, 3, -1, -1), port("t", 7, -1)},
			Output: []*onnxpb.ValueInfoProto{port("eps", 1, -1, 3, -1, -1)},
		},
	}
	for k, v := range workertest.Card("hungry") {
		m.MetadataProps = append(m.MetadataProps, &onnxpb.StringStringEntryProto{Key: k, Value: v})
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	must(t, err)
	_, err = prior.Load("hungry.onnx", data)
	must(t, err)
	return data
}

func port(name string, kind int32, dims ...int64) *onnxpb.ValueInfoProto {
	shape := &onnxpb.TensorShapeProto{}
	for _, d := range dims {
		dim := &onnxpb.TensorShapeProto_Dimension{}
		if d >= 0 {
			dim.Value = &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: d}
		} else {
			dim.Value = &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: "any"}
		}
		shape.Dim = append(shape.Dim, dim)
	}
	return &onnxpb.ValueInfoProto{Name: name, Type: &onnxpb.TypeProto{
		TensorType: &onnxpb.TypeProto_Tensor{ElemType: kind, Shape: shape},
	}}
}
