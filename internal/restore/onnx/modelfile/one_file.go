package modelfile

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/reflect/protoreflect"

	"ddiff/internal/restore/onnx/onnxpb"
)

// maxSubgraphs limits sub-graphs inside each other: the work of renaming grows with the square of their number.
const maxSubgraphs = 32

// errSparse: a sparse tensor.
var errSparse = errors.New("it has sparse tensors; export it with dense ones")

// oneFile returns an error that wraps ErrModel if values of a model are in another file: ONNX Runtime would read any file
// below the working directory. Sub-graphs are included. It also refuses more than maxSubgraphs sub-graphs
// inside each other, and functions and sparse tensors, since no exporter of networks writes them.
func oneFile(m *onnxpb.ModelProto) error {
	if len(m.Functions) > 0 {
		return fmt.Errorf("read functions: %w: it defines functions of its own; export it with their nodes", ErrModel)
	}
	return eachMessage(m.ProtoReflect(), 0)
}

// eachMessage checks a message and those inside it. depth is the number of graphs around it.
func eachMessage(m protoreflect.Message, depth int) (err error) {
	name := ""
	switch m := m.Interface().(type) {
	case *onnxpb.TensorProto:
		if m.DataLocation == onnxpb.TensorProto_EXTERNAL || len(m.ExternalData) > 0 {
			return fmt.Errorf("read tensor %q: %w: its values are in another file; export it as one file, below 2 GiB with --float16", m.Name, ErrModel)
		}
		return nil
	case *onnxpb.GraphProto:
		if depth++; depth > maxSubgraphs+1 {
			return fmt.Errorf("read graph %q: %w: more than %d graphs inside each other", m.Name, ErrModel, maxSubgraphs)
		}
		if len(m.SparseInitializer) > 0 {
			name, err = m.Name, errSparse
		}
	case *onnxpb.AttributeProto:
		if len(m.SparseTensor) > 0 || len(m.SparseTensors) > 0 {
			name, err = m.Name, errSparse
		}
	}
	if err != nil {
		return fmt.Errorf("read %q: %w: %w", name, ErrModel, err)
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil:
		case f.IsList():
			for i := 0; i < v.List().Len() && err == nil; i++ {
				err = eachMessage(v.List().Get(i).Message(), depth)
			}
		default:
			err = eachMessage(v.Message(), depth)
		}
		return err == nil
	})
	return err
}
