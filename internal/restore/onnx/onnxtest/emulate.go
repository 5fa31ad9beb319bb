package onnxtest

import (
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"ddiff/internal/restore/onnx/infer"
	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/internal/restore/onnx/onnxpb"
)

// Emulate returns a model whose nodes NhwcConv, GroupNorm and AddBias, of which the CPU computes GroupNorm in float32 alone, are standard operations,
// but for those named.
func Emulate(tb testing.TB, m *modelfile.Model, but ...string) *modelfile.Model {
	tb.Helper()
	p := proto.CloneOf(m.Proto())
	nodes := p.Graph.Node
	p.Graph.Node = nil
	for k, n := range nodes {
		add := func(op, out string, attrs map[string]any, in ...string) string {
			p.Graph.Node = append(p.Graph.Node, &onnxpb.NodeProto{OpType: op, Input: in, Output: []string{out}, Attribute: infer.EncodeAttributes(attrs)})
			return out
		}
		name := func(s string) string { return fmt.Sprintf("emulated_%d_%s", k, s) }
		constant := func(s string, t infer.DType, raw []byte, n int) string {
			p.Graph.Initializer = append(p.Graph.Initializer, &onnxpb.TensorProto{Name: name(s), DataType: int32(t), Dims: []int64{int64(n)}, RawData: raw})
			return name(s)
		}
		ints := func(s string, v ...int) string { return constant(s, infer.Int64, infer.IntBytes(v), len(v)) }
		floats := func(s string, v ...float32) string { return constant(s, infer.Float, infer.FloatBytes(v), len(v)) }
		first, last := map[string]any{"perm": []int{0, 3, 1, 2}}, map[string]any{"perm": []int{0, 2, 3, 1}}
		op := n.OpType
		if slices.Contains(but, op) {
			op = ""
		}
		switch op {
		case "NhwcConv":
			c := proto.CloneOf(n)
			c.OpType, c.Domain, c.Output = "Conv", "", []string{name("y")}
			c.Input[0], c.Input[1] = add("Transpose", name("x"), first, n.Input[0]), add("Transpose", name("w"), first, n.Input[1])
			p.Graph.Node = append(p.Graph.Node, c)
			add("Transpose", n.Output[0], last, name("y"))
		case "GroupNorm":
			attrs := infer.DecodeAttributes(n.Attribute)
			groups := attrs["groups"].(int)
			shape := add("Shape", name("shape"), nil, add("Transpose", name("x"), first, n.Input[0]))
			ones := floats("ones", slices.Repeat([]float32{1}, groups)...)
			wide := add("Cast", name("wide"), map[string]any{"to": int(infer.Float)}, name("x"))
			if len(n.Input) > 3 && n.Input[3] != "" {
				wide = add("Add", name("biased"), nil, wide, add("Reshape", name("bias"), nil, n.Input[3], ints("by_row", 1, -1, 1, 1)))
			}
			x := add("InstanceNormalization", name("normal"), map[string]any{"epsilon": attrs["epsilon"]}, add("Reshape", name("grouped"), nil, wide, ints("groups", 0, groups, -1)), ones, floats("zeros", make([]float32, groups)...))
			y := add("Transpose", name("y"), last, add("Reshape", name("whole"), nil, x, shape))
			weights := func(k int) string {
				row := n.Input[k]
				if len(n.Input) > 4 {
					row = add("Gather", name(fmt.Sprint("row", k)), nil, row, add("Gather", name(fmt.Sprint("time", k)), nil, n.Input[4], ints(fmt.Sprint("first", k), 0)))
				}
				return add("Reshape", name(fmt.Sprint("weights", k)), nil, row, ints(fmt.Sprint("by_channel", k), 1, 1, 1, -1))
			}
			gamma, beta := weights(1), weights(2)
			y = add("Add", name("line"), nil, add("Mul", name("scaled"), nil, y, gamma), beta)
			if attrs["activation"] == 1 {
				y = add("Mul", name("silu"), nil, y, add("Sigmoid", name("sigmoid"), nil, y))
			}
			// In float16 the node has the type of its input.
			add("CastLike", n.Output[0], nil, y, n.Input[0])
		case "AddBias":
			add("Add", n.Output[0], nil, add("Add", name("sum"), nil, n.Input[0], n.Input[1]), add("CastLike", name("bias"), nil, n.Input[2], n.Input[0]))
		default:
			p.Graph.Node = append(p.Graph.Node, n)
		}
	}
	data, err := proto.Marshal(p)
	if err != nil {
		tb.Fatal(err)
	}
	out, err := modelfile.ReadModel(data)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}
