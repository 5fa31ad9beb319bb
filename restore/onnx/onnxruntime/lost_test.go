package onnxruntime_test

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"ddiff/restore/onnx"
	"ddiff/restore/onnx/onnxpb"
	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/onnx/onnxtest"
)

// TestRunLosesNoCPU runs a model on the CPU that fails in a node with the name of a failure of a GPU.
func TestRunLosesNoCPU(t *testing.T) {
	rt := onnxtest.Runtime(t)
	port := func(name string, kind int32) *onnxpb.ValueInfoProto {
		return &onnxpb.ValueInfoProto{Name: name, Type: &onnxpb.TypeProto{TensorType: &onnxpb.TypeProto_Tensor{
			ElemType: kind, Shape: &onnxpb.TensorShapeProto{Dim: []*onnxpb.TensorShapeProto_Dimension{
				{Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: 1}},
			}},
		}}}
	}
	data, err := proto.Marshal(&onnxpb.ModelProto{
		IrVersion: 8, OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: onnx.DefaultOpset}},
		Graph: &onnxpb.GraphProto{
			Name: "lost", Node: []*onnxpb.NodeProto{{OpType: "Gather", Name: "device lost", Input: []string{"x", "at"}, Output: []string{"y"}}},
			Input: []*onnxpb.ValueInfoProto{port("x", 1), port("at", 7)}, Output: []*onnxpb.ValueInfoProto{port("y", 1)},
		},
	})
	must(t, err)
	s, err := rt.NewSession(data, []string{"x", "at"}, []string{"y"})
	must(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	number := onnx.Value{DType: onnx.Float, Dims: []int{1}}
	tensors, err := onnxruntime.NewTensors(number, onnx.Value{DType: onnx.Int64, Dims: []int{1}}, number)
	must(t, err)
	tensors[1].I64[0] = 7 // outside x
	err = s.Run(t.Context(), tensors[:2], tensors[2:])
	if !errors.Is(err, onnxruntime.ErrRuntime) || !strings.Contains(err.Error(), "device lost") || errors.Is(err, onnxruntime.ErrDeviceLost) {
		t.Errorf("error %v, want ErrRuntime with the name of the node, and not ErrDeviceLost", err)
	}
}
