package onnx

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"ddiff/internal/restore/onnx/infer"
	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/internal/restore/onnx/onnxpb"
)

// The operator set versions of a Graph. Built operations cannot be composed with models of other versions.
const (
	MinOpset     = 13
	MaxOpset     = 22
	DefaultOpset = 17
)

// Graph builds one ONNX graph. Sub-graphs may use values of the graphs around them, not the other way round.
type Graph struct {
	opset   int
	counter *int
	outer   *Graph // the graph around a sub-graph, else nil

	inputs  []Value
	outputs []Value
	inits   []*onnxpb.TensorProto
	consts  map[string]Value
	raw     []*onnxpb.NodeProto         // nodes in order, built and inlined
	facts   *infer.Facts                // types and small values, for reverse mode
	domains map[string]int64            // other operator sets of inlined models
	weights map[*modelfile.Model]string // inlined models: the prefix of their weights
	half    bool                        // inline models in mixed precision

	divided     bool // other sessions compute the score network
	evaluations []evaluation
}

// NewGraph starts a graph for an operator set version in [MinOpset, MaxOpset].
func NewGraph(opset int) *Graph {
	if opset < MinOpset || opset > MaxOpset {
		panic(fmt.Sprintf("onnx: operator set %d is outside %d..%d", opset, MinOpset, MaxOpset))
	}
	return &Graph{
		opset: opset, counter: new(int), facts: infer.NewFacts(nil), consts: map[string]Value{}, domains: map[string]int64{},
		weights: map[*modelfile.Model]string{},
	}
}

// Opset returns the version of the default operator set.
func (g *Graph) Opset() int { return g.opset }

// Sub starts a sub-graph of g, such as the body of a loop.
func (g *Graph) Sub() *Graph {
	return &Graph{
		opset: g.opset, counter: g.counter, outer: g, facts: infer.NewFacts(g.facts), consts: map[string]Value{},
		domains: g.domains, weights: map[*modelfile.Model]string{}, half: g.half, divided: g.divided,
	}
}

// Half makes later calls of Inline use Model.Half, or not, and returns the setting before.
func (g *Graph) Half(on bool) (before bool) {
	before, g.half = g.half, on
	return before
}

func (g *Graph) fresh(kind string) string {
	*g.counter++
	return fmt.Sprintf("%s_%d", kind, *g.counter)
}

// declare makes a value of the graph and records its type.
func (g *Graph) declare(name string, t DType, dims []int) Value {
	v := Value{Name: name, DType: t, Dims: dims}
	g.facts.Declare(v)
	return v
}

// Input declares an input of the graph.
func (g *Graph) Input(name string, t DType, dims ...int) Value {
	v := g.declare(name, t, dims)
	g.inputs = append(g.inputs, v)
	return v
}

// Output makes v an output under the given name.
func (g *Graph) Output(name string, v Value) {
	out := Value{Name: name, DType: v.DType, Dims: v.Dims}
	g.emit("Identity", []string{v.Name}, []string{name})
	g.outputs = append(g.outputs, out)
}

// Const adds a float constant. Equal constants are stored once per graph.
func (g *Graph) Const(data []float32, dims ...int) Value {
	if len(data) != infer.Size(dims) {
		panic(fmt.Sprintf("onnx: constant of %d elements for shape %v", len(data), dims))
	}
	return g.constant(Float, infer.FloatBytes(data), dims)
}

// Scalar adds a float constant of rank 0.
func (g *Graph) Scalar(x float32) Value { return g.Const([]float32{x}) }

// Ints adds an int64 constant of rank 1.
func (g *Graph) Ints(data ...int) Value {
	return g.constant(Int64, infer.IntBytes(data), []int{len(data)})
}

func (g *Graph) constant(t DType, raw []byte, dims []int) Value {
	key := fmt.Sprint(t, dims, sha256.Sum256(raw))
	if v, ok := g.consts[key]; ok {
		return v
	}
	v := g.declare(g.fresh("const"), t, dims)
	g.store(&onnxpb.TensorProto{Name: v.Name, DataType: int32(t), Dims: infer.Int64s(dims), RawData: raw})
	g.consts[key] = v
	return v
}

// store adds an initializer.
func (g *Graph) store(t *onnxpb.TensorProto) {
	g.inits = append(g.inits, t)
	g.facts.Store(t)
}

// push appends a node.
func (g *Graph) push(n *onnxpb.NodeProto) {
	g.raw = append(g.raw, n)
	g.facts.Produce(n)
}

// emit appends a node without recording it for reverse mode.
func (g *Graph) emit(op string, inputs, outputs []string, attrs ...*onnxpb.AttributeProto) {
	g.push(&onnxpb.NodeProto{Name: outputs[0], OpType: op, Input: inputs, Output: outputs, Attribute: attrs})
}

// Apply appends an operation with one output and records it for reverse mode. Values of attrs are int, []int, float32,
// []float32 or string. Use it for operations without a method of their own; it does not check t and dims. The zero Value is
// an omitted optional input.
func (g *Graph) Apply(op string, t DType, dims []int, attrs map[string]any, inputs ...Value) Value {
	out := g.declare(g.fresh(op), t, dims)
	g.record(op, attrs, inputs, []Value{out})
	return out
}

// op appends an operation whose type and dimensions follow from its inputs, and records it for reverse mode.
func (g *Graph) op(op string, attrs map[string]any, inputs ...Value) Value {
	return g.parts(op, 1, attrs, inputs...)[0]
}

// parts is op with several outputs.
func (g *Graph) parts(op string, outputs int, attrs map[string]any, inputs ...Value) []Value {
	n := &infer.Node{Op: op, Inputs: inputs, Outputs: make([]Value, outputs), Attrs: attrs}
	for i := range n.Outputs {
		n.Outputs[i].Name = g.fresh(op)
	}
	if err := g.facts.Infer(n); err != nil {
		panic(fmt.Sprintf("onnx: %s: %v", op, err))
	}
	for _, v := range n.Outputs {
		g.facts.Declare(v)
	}
	g.record(op, attrs, inputs, n.Outputs)
	return n.Outputs
}

// record appends an operation and records it for reverse mode.
func (g *Graph) record(op string, attrs map[string]any, inputs, outputs []Value) {
	g.facts.Record(&infer.Node{Op: op, Name: outputs[0].Name, Inputs: inputs, Outputs: outputs, Attrs: attrs})
	g.emit(op, Names(inputs), Names(outputs), infer.EncodeAttributes(attrs)...)
}

// Names returns the names of values.
func Names(values []Value) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = v.Name
	}
	return out
}

// proto returns the graph in its file form, without operator sets.
func (g *Graph) proto(name string) *onnxpb.GraphProto {
	p := &onnxpb.GraphProto{Name: name, Node: g.raw, Initializer: g.inits}
	for _, v := range g.inputs {
		p.Input = append(p.Input, valueInfo(v))
	}
	for _, v := range g.outputs {
		p.Output = append(p.Output, valueInfo(v))
	}
	return p
}

// Bytes estimates the memory of a call of g, in bytes, if no value gives way to another: that of all values that its nodes compute, and of their work
// spaces. The error names the first node whose outputs have an unknown shape, and wraps [infer.ErrShape].
func (g *Graph) Bytes() (sum float64, err error) {
	for _, p := range g.raw {
		if n, err := g.facts.Understand(p); err == nil {
			sum += n.Bytes()
			continue
		}
		for _, name := range p.Output { // of an operation that the graph states the shape of, see Apply
			v, err := g.facts.TypeOf(name)
			if name != "" && err != nil {
				return 0, err
			}
			sum += v.Bytes()
		}
	}
	return sum, nil
}

func valueInfo(v Value) *onnxpb.ValueInfoProto {
	shape := &onnxpb.TensorShapeProto{}
	for i, d := range v.Dims {
		dim := &onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: int64(d)}}
		if d < 0 {
			dim.Value = &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: fmt.Sprintf("%s_%d", v.Name, i)}
		}
		shape.Dim = append(shape.Dim, dim)
	}
	return &onnxpb.ValueInfoProto{Name: v.Name, Type: &onnxpb.TypeProto{
		TensorType: &onnxpb.TypeProto_Tensor{ElemType: int32(v.DType), Shape: shape},
	}}
}

// Marshal serialises the graph as a model file. Equal graphs have equal bytes.
func (g *Graph) Marshal(name string) ([]byte, error) { return g.marshal(name, g.proto(name)) }

func (g *Graph) marshal(name string, p *onnxpb.GraphProto) ([]byte, error) {
	m := &onnxpb.ModelProto{
		IrVersion:    8,
		ProducerName: "ddiff",
		Graph:        p,
		OpsetImport:  []*onnxpb.OperatorSetIdProto{{Version: int64(g.opset)}},
	}
	if g.opset > 18 {
		m.IrVersion = 9
	}
	if g.opset > 20 {
		m.IrVersion = 10
	}
	for _, d := range slices.Sorted(maps.Keys(g.domains)) {
		m.OpsetImport = append(m.OpsetImport, &onnxpb.OperatorSetIdProto{Domain: d, Version: g.domains[d]})
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("marshal graph %s: %w", name, err)
	}
	return b, nil
}
