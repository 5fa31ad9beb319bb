package randomnet

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"ddiff/restore/noise"
	"ddiff/restore/onnx"
	"ddiff/restore/onnx/onnxpb"
)

// builder collects the nodes and constants of a graph. Values are identified by name.
type builder struct {
	cfg     Config
	graph   *onnxpb.GraphProto
	weights []weight
	known   map[string]bool // names of the constants
	count   int
}

// weight is one tensor of the state dictionary, float32 in little-endian order.
type weight struct {
	name string
	dims []int
	raw  []byte
}

// optional is the name of an omitted optional input.
const optional = ""

func (b *builder) fresh() string {
	b.count++
	return fmt.Sprintf("v%d", b.count)
}

// input declares an input whose first dimension, the batch, is variable.
func (b *builder) input(name string, t onnx.DType, dims ...int) string {
	b.graph.Input = append(b.graph.Input, port(name, t, dims...))
	return name
}

func port(name string, t onnx.DType, dims ...int) *onnxpb.ValueInfoProto {
	batch := &onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: "n"}}
	shape := &onnxpb.TensorShapeProto{Dim: []*onnxpb.TensorShapeProto_Dimension{batch}}
	for _, d := range dims {
		shape.Dim = append(shape.Dim, &onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: int64(d)}})
	}
	return &onnxpb.ValueInfoProto{Name: name, Type: &onnxpb.TypeProto{
		TensorType: &onnxpb.TypeProto_Tensor{ElemType: int32(t), Shape: shape},
	}}
}

// node appends an operation with one output and returns its name: out, or a new name if out is empty. parts are inputs
// (string) and attributes.
func (b *builder) node(op, out string, parts ...any) string {
	if out == "" {
		out = b.fresh()
	}
	n := &onnxpb.NodeProto{Name: out, OpType: op, Output: []string{out}}
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			n.Input = append(n.Input, p)
		case *onnxpb.AttributeProto:
			n.Attribute = append(n.Attribute, p)
		}
	}
	b.graph.Node = append(b.graph.Node, n)
	return out
}

func number(name string, v int64) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: name, Type: onnxpb.AttributeProto_INT, I: v}
}

func numbers(name string, v ...int) *onnxpb.AttributeProto {
	a := &onnxpb.AttributeProto{Name: name, Type: onnxpb.AttributeProto_INTS}
	for _, x := range v {
		a.Ints = append(a.Ints, int64(x))
	}
	return a
}

func decimal(name string, v float32) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: name, Type: onnxpb.AttributeProto_FLOAT, F: v}
}

func text(name, v string) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: name, Type: onnxpb.AttributeProto_STRING, S: []byte(v)}
}

// shape returns an int64 constant.
func (b *builder) shape(dims ...int) string {
	var raw []byte
	for _, d := range dims {
		raw = binary.LittleEndian.AppendUint64(raw, uint64(d))
	}
	name := strings.ReplaceAll(strings.Trim(fmt.Sprint("shape_", dims), "]"), " ", "_")
	return b.constant(strings.ReplaceAll(name, "[", ""), onnx.Int64, raw, len(dims))
}

// floats returns a float constant that is not a weight.
func (b *builder) floats(name string, data []float32, dims ...int) string {
	return b.constant(name, onnx.Float, littleEndian(data), dims...)
}

func littleEndian(data []float32) []byte {
	raw := make([]byte, 4*len(data))
	for i, x := range data {
		binary.LittleEndian.PutUint32(raw[4*i:], math.Float32bits(x))
	}
	return raw
}

func (b *builder) constant(name string, t onnx.DType, raw []byte, dims ...int) string {
	if b.known[name] {
		return name
	}
	b.known[name] = true
	p := &onnxpb.TensorProto{Name: name, DataType: int32(t), RawData: raw}
	for _, d := range dims {
		p.Dims = append(p.Dims, int64(d))
	}
	b.graph.Initializer = append(b.graph.Initializer, p)
	return name
}

// draw returns a random weight with the given mean and standard deviation. Its shape is dims in the graph and stored in
// the state dictionary. Its values depend on seed and name only.
func (b *builder) draw(name string, mean float32, deviation float64, stored []int, dims ...int) string {
	size := 1
	for _, d := range dims {
		size *= d
	}
	key := noise.NewKey(sha256.Sum256(fmt.Appendf(nil, "random network %d %s", b.cfg.Seed, name)))
	data := make([]float32, size)
	noise.Normal(data, key, noise.Start, 0, deviation)
	for i := range data {
		data[i] += mean
	}
	raw := littleEndian(data)
	b.weights = append(b.weights, weight{name, stored, raw})
	return b.constant(name, onnx.Float, raw, dims...)
}

// isAttention reports whether a layer belongs to an attention block.
func isAttention(name string) bool {
	return strings.HasSuffix(name, ".qkv") || strings.HasSuffix(name, ".proj_out")
}
