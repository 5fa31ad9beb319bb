package modelfile_test

import (
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"

	"ddiff/internal/fuzztest"
	"ddiff/internal/restore/onnx/infer"
	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/internal/restore/onnx/onnxpb"
	"ddiff/restore/onnx"
)

// fuzzModels returns small models: one with the forms that are rewritten and shapes that are computed, and the beginning of a network without its weights.
func fuzzModels(f *testing.F) (all [][]byte) {
	g := onnx.NewGraph(onnx.DefaultOpset)
	g.Output("y", g.Neg(g.Input("x", onnx.Float, 2)))
	data, err := g.Marshal("m")
	must(f, err)
	all = append(all, data)

	network := modelOf(f, "bundled/prior.onnx").Proto()
	network = proto.CloneOf(network)
	for _, t := range network.Graph.Initializer {
		if len(t.RawData) > 64 {
			t.RawData = nil
		}
	}
	network.Graph.Node = network.Graph.Node[:60]
	data, err = proto.Marshal(network)
	must(f, err)
	all = append(all, data)
	node := func(op string, attrs map[string]any, out string, inputs ...string) *onnxpb.NodeProto {
		return &onnxpb.NodeProto{OpType: op, Input: inputs, Output: []string{out}, Attribute: infer.EncodeAttributes(attrs)}
	}
	integers := func(name string, x ...int) *onnxpb.TensorProto {
		return &onnxpb.TensorProto{Name: name, DataType: int32(infer.Int64), Dims: []int64{int64(len(x))}, RawData: infer.IntBytes(x)}
	}
	floats := func(name string, dims []int, x ...float32) *onnxpb.TensorProto {
		return &onnxpb.TensorProto{Name: name, DataType: int32(infer.Float), Dims: infer.Int64s(dims), RawData: infer.FloatBytes(x)}
	}
	data, err = proto.Marshal(&onnxpb.ModelProto{OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: 17}}, Graph: &onnxpb.GraphProto{
		Input: []*onnxpb.ValueInfoProto{{Name: "x", Type: &onnxpb.TypeProto{TensorType: &onnxpb.TypeProto_Tensor{
			ElemType: int32(infer.Float), Shape: &onnxpb.TensorShapeProto{Dim: []*onnxpb.TensorShapeProto_Dimension{
				{Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: 1}}, {Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: 4}},
				{Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: 8}}, {Value: &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: "W"}},
			}}}}}},
		Initializer: []*onnxpb.TensorProto{
			integers("zero", 0), integers("one", 1), integers("groups", 1, 2, -1), integers("many", 7, 3), floats("ones", []int{2}, 1, 1), floats("zeros", []int{2}, 0, 0),
			floats("gamma", []int{4, 1, 1}, 1, 2, 3, 4), floats("w", []int{4, 4, 1, 1}, make([]float32, 16)...),
		},
		Node: []*onnxpb.NodeProto{
			node("Shape", nil, "shape", "x"), node("Gather", map[string]any{"axis": 0}, "batch", "shape", "zero"),
			node("Unsqueeze", nil, "batches", "batch", "zero"), node("Concat", map[string]any{"axis": 0}, "target", "zero", "groups"),
			node("ConstantOfShape", nil, "filled", "many"), node("Slice", nil, "cut", "many", "zero", "one", "zero"), node("Range", nil, "range", "zero", "one", "one"),
			node("Reshape", nil, "split", "x", "groups"), node("InstanceNormalization", map[string]any{"epsilon": float32(1e-5)}, "normal", "split", "ones", "zeros"),
			node("Reshape", nil, "merged", "normal", "shape"), node("Mul", nil, "scaled", "merged", "gamma"), node("Add", nil, "shifted", "scaled", "gamma"),
			node("Sigmoid", nil, "sigmoid", "shifted"), node("Mul", nil, "silu", "shifted", "sigmoid"),
			node("Conv", map[string]any{"pads": []int{0, 0, 0, 0}, "strides": []int{1, 1}}, "conv", "silu", "w"),
			node("ReduceMean", map[string]any{"axes": []int{1}}, "mean", "conv"), node("Split", map[string]any{"axis": 1}, "part", "conv"),
			node("Pad", nil, "padded", "conv", "many"), node("Tile", nil, "tiled", "x", "many"), node("Einsum", map[string]any{"equation": "b...,b...->..."}, "y", "x", "conv"),
		},
		Output: []*onnxpb.ValueInfoProto{{Name: "y"}},
	}})
	must(f, err)
	return append(all, data)
}

// FuzzReadModel: what is read is rewritten and understood, or refused, without a panic and with memory in proportion to the file.
func FuzzReadModel(f *testing.F) {
	for _, data := range fuzzModels(f) {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		fuzztest.Limit(t, 32<<20+4096*len(data), func() {
			m, err := modelfile.ReadModel(data)
			if err != nil {
				if !errors.Is(err, modelfile.ErrModel) {
					t.Errorf("error %v, want ErrModel", err)
				}
				return
			}
			for _, p := range append(m.Inputs(), m.Outputs()...) {
				if p.Text() == "" || len(p.Dims) != len(p.DimNames) {
					t.Errorf("port %+v", p)
				}
			}
			m.Metadata()
			m.Parameters()
			if m.Width(3) < 3 {
				t.Errorf("width %d for images of 3 channels", m.Width(3))
			}
			sides := map[string][]int{}
			for _, p := range m.Inputs() {
				for i, d := range p.Dims {
					if d < 0 {
						p.Dims[i] = 16
					}
				}
				sides[p.Name] = p.Dims
			}
			types, err := m.Types(sides)
			if err != nil && !errors.Is(err, modelfile.ErrModel) {
				t.Errorf("error %v, want ErrModel", err)
			}
			for name, v := range types {
				for _, d := range v.Dims {
					if d < 0 {
						t.Errorf("%s has the dimensions %v", name, v.Dims)
					}
				}
			}
			m.FuseGroupNorm()
			m.Half()
			m.Constants()
			for opset := onnx.MinOpset; opset <= onnx.MaxOpset; opset += 4 {
				if _, err := m.Convert(opset); err != nil && !errors.Is(err, modelfile.ErrModel) {
					t.Errorf("error %v, want ErrModel", err)
				}
			}
		})
	})
}
