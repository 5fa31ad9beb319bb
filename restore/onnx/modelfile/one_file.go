package modelfile

import (
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"ddiff/restore/onnx/onnxpb"
)

// Numbers of fields that onnx.proto does not list.
const (
	sparseInitializer protowire.Number = 15 // of a graph
	sparseTensor      protowire.Number = 22 // of an attribute
	sparseTensors     protowire.Number = 23 // of an attribute
	functionNode      protowire.Number = 7  // of a function of a model
)

// maxSubgraphs limits sub-graphs inside each other: the work of renaming grows with the square of their number.
const maxSubgraphs = 32

// errSparse: a sparse tensor.
var errSparse = errors.New("it has sparse tensors; export it with dense ones")

// oneFile returns an error that wraps ErrModel if values of a model are in another file: ONNX Runtime would read any file
// below the working directory. Sub-graphs and functions are included. It also refuses more than maxSubgraphs sub-graphs
// inside each other, and sparse tensors, since no exporter of networks writes them.
func oneFile(m *onnxpb.ModelProto) error {
	for _, data := range m.Functions {
		nodes, err := fields(data, functionNode)
		if err != nil {
			return fmt.Errorf("read function: %w: %w", ErrModel, err)
		}
		for _, data := range nodes {
			n := &onnxpb.NodeProto{}
			if err := proto.Unmarshal(data, n); err != nil {
				return fmt.Errorf("read function: %w: %w", ErrModel, err)
			}
			if err := oneFileNode(n, maxSubgraphs); err != nil {
				return err
			}
		}
	}
	return oneFileGraph(m.Graph, maxSubgraphs)
}

func oneFileGraph(g *onnxpb.GraphProto, depth int) error {
	if depth < 0 {
		return fmt.Errorf("read graph %q: %w: more than %d graphs inside each other", g.Name, ErrModel, maxSubgraphs)
	}
	if err := dense(g, g.Name, sparseInitializer); err != nil {
		return err
	}
	for _, t := range g.Initializer {
		if err := oneFileTensor(t); err != nil {
			return err
		}
	}
	for _, n := range g.Node {
		if err := oneFileNode(n, depth); err != nil {
			return err
		}
	}
	return nil
}

func oneFileNode(n *onnxpb.NodeProto, depth int) error {
	for _, a := range n.Attribute {
		if err := dense(a, a.Name, sparseTensor, sparseTensors); err != nil {
			return err
		}
		for _, t := range append(slices.Clone(a.Tensors), a.T) {
			if err := oneFileTensor(t); err != nil {
				return err
			}
		}
		for _, g := range append(slices.Clone(a.Graphs), a.G) {
			if g == nil {
				continue
			}
			if err := oneFileGraph(g, depth-1); err != nil {
				return err
			}
		}
	}
	return nil
}

func oneFileTensor(t *onnxpb.TensorProto) error {
	if t.GetDataLocation() == onnxpb.TensorProto_EXTERNAL || len(t.GetExternalData()) > 0 {
		return fmt.Errorf("read tensor %q: %w: its values are in another file", t.Name, ErrModel)
	}
	return nil
}

// dense returns an error if a message has one of the fields of sparse tensors.
func dense(m proto.Message, name string, sparse ...protowire.Number) error {
	found, err := fields(m.ProtoReflect().GetUnknown(), sparse...)
	if err == nil && len(found) > 0 {
		err = errSparse
	}
	if err != nil {
		return fmt.Errorf("read %q: %w: %w", name, ErrModel, err)
	}
	return nil
}

// fields returns the contents of the fields of a message with the given numbers, which hold messages.
func fields(data []byte, numbers ...protowire.Number) (found [][]byte, err error) {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		size := protowire.ConsumeFieldValue(number, kind, data[n:])
		if size < 0 {
			return nil, protowire.ParseError(size)
		}
		if slices.Contains(numbers, number) {
			content, _ := protowire.ConsumeBytes(data[n:])
			found = append(found, content)
		}
		data = data[n+size:]
	}
	return found, nil
}
