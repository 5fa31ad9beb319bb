package main_test

import (
	"encoding/binary"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"ddiff/restore/onnx/onnxpb"
)

// badGraphs are priors whose files are sound and whose graphs ONNX Runtime cannot run, or must not.
func badGraphs(t *testing.T) []badInput {
	t.Helper()
	path := filepath.Join(t.TempDir(), "p.onnx")
	writePrior(t, path, 3, card(3))
	sound := read(t, path)
	integers := func(name string, values ...uint64) *onnxpb.TensorProto {
		tensor := &onnxpb.TensorProto{Name: name, Dims: []int64{int64(len(values))}, DataType: 7}
		for _, v := range values {
			tensor.RawData = binary.LittleEndian.AppendUint64(tensor.RawData, v)
		}
		return tensor
	}
	scalar := func(name string, value uint64) *onnxpb.TensorProto {
		tensor := integers(name, value)
		tensor.Dims = nil
		return tensor
	}
	node := func(op string, outputs []string, inputs ...string) *onnxpb.NodeProto {
		return &onnxpb.NodeProto{OpType: op, Input: inputs, Output: outputs}
	}
	with := func(n *onnxpb.NodeProto, a ...*onnxpb.AttributeProto) *onnxpb.NodeProto {
		n.Attribute = append(n.Attribute, a...)
		return n
	}
	whole := func(name string, i int64) *onnxpb.AttributeProto {
		return &onnxpb.AttributeProto{Name: name, I: i, Type: 2}
	}
	external, err := proto.Marshal(&onnxpb.TensorProto{
		Dims: []int64{1}, DataType: 1, DataLocation: onnxpb.TensorProto_EXTERNAL,
		ExternalData: []*onnxpb.StringStringEntryProto{{Key: "location", Value: "a.png"}},
	})
	must(t, err)
	sparse := &onnxpb.AttributeProto{Name: "sparse_value", Type: 11}
	values := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), external)
	sparse.ProtoReflect().SetUnknown(protowire.AppendBytes(protowire.AppendTag(nil, 22, protowire.BytesType), values))
	mean := node("ReduceMean", []string{"m"}, "r")
	add := node("Add", []string{"eps"}, "x", "m")
	var all []badInput
	for name, c := range map[string]struct {
		nodes     []*onnxpb.NodeProto
		constants []*onnxpb.TensorProto
		part      string
	}{
		"range of 2^62":       {[]*onnxpb.NodeProto{node("Range", []string{"i"}, "0", "n", "1"), with(node("Cast", []string{"r"}, "i"), whole("to", 1)), mean, add}, []*onnxpb.TensorProto{scalar("0", 0), scalar("n", 1<<62), scalar("1", 1)}, "overflow"},
		"constant of 4 TiB":   {[]*onnxpb.NodeProto{node("ConstantOfShape", []string{"r"}, "n"), mean, add}, []*onnxpb.TensorProto{integers("n", 1<<20, 1<<20)}, "out of memory"},
		"padding of 2^40":     {[]*onnxpb.NodeProto{node("Pad", []string{"r"}, "x", "n"), mean, add}, []*onnxpb.TensorProto{integers("n", 0, 0, 1<<40, 1<<40, 0, 0, 0, 0)}, "verflow"},
		"tiles of 2^120":      {[]*onnxpb.NodeProto{node("Tile", []string{"r"}, "x", "n"), mean, add}, []*onnxpb.TensorProto{integers("n", 1<<30, 1<<30, 1<<30, 1<<30)}, "p.onnx"},
		"split into 2^40":     {[]*onnxpb.NodeProto{with(node("Split", []string{"r"}, "x"), whole("num_outputs", 1<<40)), mean, add}, nil, "p.onnx"},
		"sparse data outside": {[]*onnxpb.NodeProto{with(node("Constant", []string{"m"}), sparse), add}, nil, "sparse"},
	} {
		m := &onnxpb.ModelProto{}
		must(t, proto.Unmarshal(sound, m))
		m.Graph.Node, m.Graph.Initializer, m.OpsetImport = c.nodes, c.constants, []*onnxpb.OperatorSetIdProto{{Version: 18}}
		data, err := proto.Marshal(m)
		must(t, err)
		files := map[string][]byte{"p.onnx": data, "a.png": grey(16)}
		all = append(all,
			badInput{name: "graph/check " + name, files: files, args: []string{"prior", "check", "p.onnx", "--size", "16", "--threads", "1"}, code: 7, parts: []string{"ddiff: ", c.part}},
			refused("graph/run "+name, files, 7, []string{"ddiff: ", c.part}, "a.png", "--task", "hdr", "--prior", "p.onnx"))
	}
	return all
}
