package infer

import (
	"fmt"
	"maps"
	"slices"

	"ddiff/internal/restore/onnx/onnxpb"
)

// EncodeAttributes encodes in the order of names, so that equal graphs have equal bytes.
func EncodeAttributes(attrs map[string]any) []*onnxpb.AttributeProto {
	var out []*onnxpb.AttributeProto
	for _, name := range slices.Sorted(maps.Keys(attrs)) {
		a := &onnxpb.AttributeProto{Name: name}
		switch v := attrs[name].(type) {
		case int:
			a.Type, a.I = onnxpb.AttributeProto_INT, int64(v)
		case []int:
			a.Type, a.Ints = onnxpb.AttributeProto_INTS, Int64s(v)
		case float32:
			a.Type, a.F = onnxpb.AttributeProto_FLOAT, v
		case []float32:
			a.Type, a.Floats = onnxpb.AttributeProto_FLOATS, v
		case string:
			a.Type, a.S = onnxpb.AttributeProto_STRING, []byte(v)
		default:
			panic(fmt.Sprintf("onnx: attribute %s has type %T", name, v))
		}
		out = append(out, a)
	}
	return out
}

// DecodeAttributes decodes the attributes of a node from a file. Sub-graphs are left out.
func DecodeAttributes(attrs []*onnxpb.AttributeProto) map[string]any {
	out := map[string]any{}
	for _, a := range attrs {
		switch a.Type {
		case onnxpb.AttributeProto_INT:
			out[a.Name] = int(a.I)
		case onnxpb.AttributeProto_INTS:
			out[a.Name] = Ints(a.Ints)
		case onnxpb.AttributeProto_FLOAT:
			out[a.Name] = a.F
		case onnxpb.AttributeProto_FLOATS:
			out[a.Name] = slices.Clone(a.Floats)
		case onnxpb.AttributeProto_STRING:
			out[a.Name] = string(a.S)
		case onnxpb.AttributeProto_TENSOR:
			out[a.Name] = a.T
		}
	}
	return out
}
