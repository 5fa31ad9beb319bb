package modelfile

import (
	"strings"

	"google.golang.org/protobuf/proto"

	"ddiff/internal/restore/onnx/infer"
	"ddiff/internal/restore/onnx/onnxpb"
)

// HalfRounded emulates Half on a device that stores float16 and accumulates in float32: it rounds the result of each
// operation to the 11 bits of a float16 significand. On a CPU, which has few float16 kernels, the runtime removes the
// conversions, so that Half alone would test little.
func (m *Model) HalfRounded() *Model {
	h := &Model{proto: proto.CloneOf(m.Half().proto)}
	g := h.proto.Graph
	factor := &onnxpb.TensorProto{Name: "veltkamp", DataType: int32(infer.Float), FloatData: []float32{1<<13 + 1}}
	g.Initializer = append(g.Initializer, factor)
	stored := map[string]bool{} // weights in float16
	for _, t := range g.Initializer {
		stored[t.Name] = t.DataType == int32(infer.Float16)
	}
	var nodes []*onnxpb.NodeProto
	add := func(op, out string, attrs map[string]any, in ...string) {
		nodes = append(nodes, &onnxpb.NodeProto{OpType: op, Input: in, Output: []string{out}, Attribute: infer.EncodeAttributes(attrs)})
	}
	for _, n := range g.Node {
		for i, name := range n.Input {
			if stored[name] && n.OpType != "Cast" {
				n.Input[i] = n.Output[0] + "/weight"
				add("Cast", n.Input[i], map[string]any{"to": int(infer.Float)}, name)
			}
		}
		for _, a := range n.Attribute {
			if n.OpType == "Cast" && a.Name == "to" && a.I == int64(infer.Float16) {
				a.I = int64(infer.Float)
			}
		}
		nodes = append(nodes, n)
		for i, name := range n.Output {
			if strings.HasSuffix(name, "/half") {
				// Veltkamp: with c = (2¹³+1)·x, c − (c − x) is x rounded to 24 − 13 bits.
				raw, c, d := name+"/raw", name+"/c", name+"/d"
				n.Output[i] = raw
				add("Mul", c, nil, raw, "veltkamp")
				add("Sub", d, nil, c, raw)
				add("Sub", name, nil, c, d)
			}
		}
	}
	g.Node = nodes
	return h
}
