package modelfile

import (
	"fmt"

	"google.golang.org/protobuf/reflect/protoreflect"

	"ddiff/restore/onnx/onnxpb"
)

// oneFile returns an error that wraps ErrModel if values of a model are in another file: ONNX Runtime would read any file
// below the working directory. Sub-graphs are included. It also refuses functions and sparse tensors, since no exporter of networks writes
// them.
func oneFile(m *onnxpb.ModelProto) error {
	if len(m.Functions) > 0 {
		return fmt.Errorf("read functions: %w: it defines functions of its own; export it with their nodes", ErrModel)
	}
	return eachMessage(m.ProtoReflect())
}

// eachMessage checks a message and those inside it.
func eachMessage(m protoreflect.Message) (err error) {
	sparse := false
	switch m := m.Interface().(type) {
	case *onnxpb.TensorProto:
		if m.DataLocation == onnxpb.TensorProto_EXTERNAL || len(m.ExternalData) > 0 {
			return fmt.Errorf("read tensor %q: %w: its values are in another file", m.Name, ErrModel)
		}
		return nil
	case *onnxpb.GraphProto:
		sparse = len(m.SparseInitializer) > 0
	case *onnxpb.AttributeProto:
		sparse = len(m.SparseTensor) > 0 || len(m.SparseTensors) > 0
	}
	if sparse {
		return fmt.Errorf("read model: %w: it has sparse tensors; export it with dense ones", ErrModel)
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil:
		case f.IsList():
			for i := 0; i < v.List().Len() && err == nil; i++ {
				err = eachMessage(v.List().Get(i).Message())
			}
		default:
			err = eachMessage(v.Message())
		}
		return err == nil
	})
	return err
}
