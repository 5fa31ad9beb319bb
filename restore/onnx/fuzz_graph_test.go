package onnx_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"ddiff/restore/onnx"
	"ddiff/restore/onnx/modelfile"
	"ddiff/restore/onnx/onnxpb"
)

// fuzzer builds one random model from x to y in the forms that exporters write. Every operation that has a kink gets
// values away from it, so that finite differences are exact.
type fuzzer struct {
	*rand.Rand
	opset int
	graph *onnxpb.GraphProto
	vals  []tensor // values that depend on x
	used  []string // operations
}

// tensor is a value of the generated model.
type tensor struct {
	name string
	dims []int
}

func (v tensor) rank() int { return len(v.dims) }

func (v tensor) size() int {
	n := 1
	for _, d := range v.dims {
		n *= d
	}
	return n
}

// attrs are the attributes of a generated node.
type attrs map[string]any

// node adds a node with one output of the given dimensions.
func (f *fuzzer) node(op string, a attrs, dims []int, inputs ...tensor) tensor {
	return f.nodes(op, a, [][]int{dims}, inputs...)[0]
}

// nodes adds a node with several outputs.
func (f *fuzzer) nodes(op string, a attrs, dims [][]int, inputs ...tensor) []tensor {
	n := &onnxpb.NodeProto{OpType: op}
	for _, in := range inputs {
		n.Input = append(n.Input, in.name)
	}
	for i := range dims {
		n.Output = append(n.Output, fmt.Sprintf("%s_%d_%d", op, len(f.graph.Node), i))
	}
	for _, name := range slices.Sorted(mapKeys(a)) {
		p := &onnxpb.AttributeProto{Name: name}
		switch v := a[name].(type) {
		case int:
			p.Type, p.I = onnxpb.AttributeProto_INT, int64(v)
		case []int:
			p.Type = onnxpb.AttributeProto_INTS
			for _, x := range v {
				p.Ints = append(p.Ints, int64(x))
			}
		case float64:
			p.Type, p.F = onnxpb.AttributeProto_FLOAT, float32(v)
		case string:
			p.Type, p.S = onnxpb.AttributeProto_STRING, []byte(v)
		default:
			panic(fmt.Sprintf("attribute %s of type %T", name, v))
		}
		n.Attribute = append(n.Attribute, p)
	}
	f.graph.Node = append(f.graph.Node, n)
	f.used = append(f.used, op)
	out := make([]tensor, len(dims))
	for i := range dims {
		out[i] = tensor{n.Output[i], dims[i]}
	}
	return out
}

func mapKeys(a attrs) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k := range a {
			if !yield(k) {
				return
			}
		}
	}
}

// store adds an initializer.
func (f *fuzzer) store(t *onnxpb.TensorProto, dims []int) tensor {
	t.Name = fmt.Sprintf("const_%d", len(f.graph.Initializer))
	for _, d := range dims {
		t.Dims = append(t.Dims, int64(d))
	}
	f.graph.Initializer = append(f.graph.Initializer, t)
	return tensor{t.Name, dims}
}

// ints adds an int64 vector.
func (f *fuzzer) ints(data ...int) tensor {
	t := &onnxpb.TensorProto{DataType: int32(onnx.Int64)}
	for _, x := range data {
		t.Int64Data = append(t.Int64Data, int64(x))
	}
	return f.store(t, []int{len(data)})
}

// floats adds a float constant.
func (f *fuzzer) floats(dims []int, value func(i int) float64) tensor {
	t := &onnxpb.TensorProto{DataType: int32(onnx.Float)}
	for i := range (tensor{dims: dims}).size() {
		t.FloatData = append(t.FloatData, float32(value(i)))
	}
	return f.store(t, dims)
}

func (f *fuzzer) scalar(x float64) tensor { return f.floats(nil, func(int) float64 { return x }) }

// weights adds a normal constant with the given deviation.
func (f *fuzzer) weights(deviation float64, dims ...int) tensor {
	return f.floats(dims, func(int) float64 { return deviation * f.NormFloat64() })
}

// coin is true with the given chance.
func (f *fuzzer) coin(chance float64) bool { return f.Float64() < chance }

// pick returns a value that depends on x, mostly a late one.
func (f *fuzzer) pick() tensor {
	if f.coin(0.7) {
		return f.vals[len(f.vals)-1]
	}
	return f.vals[f.IntN(len(f.vals))]
}

// ranked returns a value of the given rank, reshaped if none has it.
func (f *fuzzer) ranked(rank int) tensor {
	v := f.pick()
	if v.rank() == rank {
		return v
	}
	dims := append([]int{}, v.dims...)
	for len(dims) < rank {
		dims = append(dims, 1)
		if n := len(dims); n >= 2 && dims[n-2]%2 == 0 {
			dims[n-2], dims[n-1] = dims[n-2]/2, 2
		}
	}
	for len(dims) > rank {
		last := len(dims) - 1
		dims[last-1] *= dims[last]
		dims = dims[:last]
	}
	return f.node("Reshape", nil, dims, v, f.ints(dims...))
}

// bounded returns c + 0.3·tanh(v) with c from a constant.
func (f *fuzzer) bounded(v tensor, c func(i int) float64) tensor {
	t := f.node("Tanh", nil, v.dims, f.node("Mul", nil, v.dims, v, f.scalar(1.5)))
	t = f.node("Mul", nil, v.dims, t, f.scalar(0.3))
	return f.node("Add", nil, v.dims, t, f.floats(v.dims, c))
}

// sided returns values between 0.7 and 1.3 or their negatives, away from kinks at 0.
func (f *fuzzer) sided(v tensor) tensor {
	return f.bounded(v, func(int) float64 { return float64(2*f.IntN(2) - 1) })
}

// above returns values between 0.7 and 1.3.
func (f *fuzzer) above(v tensor) tensor { return f.bounded(v, func(int) float64 { return 1 }) }

// apart returns values with distances that no step bridges.
func (f *fuzzer) apart(v tensor) tensor {
	order := f.Perm(v.size())
	c := f.floats(v.dims, func(i int) float64 { return float64(order[i]) - float64(len(order))/2 })
	t := f.node("Tanh", nil, v.dims, v)
	t = f.node("Add", nil, v.dims, f.node("Mul", nil, v.dims, t, f.scalar(0.3)), c)
	return f.node("Mul", nil, v.dims, t, f.scalar(3/float64(len(order))))
}

// add makes v a candidate for further operations.
func (f *fuzzer) add(v tensor) {
	const limit = 600
	if v.rank() > 5 {
		v = f.node("Flatten", nil, []int{v.dims[0], v.size() / v.dims[0]}, v)
	}
	if v.size() > limit {
		dims := slices.Clone(v.dims)
		ax := 0
		for i, d := range dims {
			if d > dims[ax] {
				ax = i
			}
		}
		dims[ax] = max(1, dims[ax]*limit/v.size())
		v = f.node("Slice", nil, dims, v, f.ints(0), f.ints(dims[ax]), f.ints(ax))
	}
	if f.coin(0.3) {
		v = f.node("Tanh", nil, v.dims, v)
	}
	f.vals = append(f.vals, v)
}

// fuzzed is one generated model.
type fuzzed struct {
	model *modelfile.Model
	x, y  []int
	names []string // values whose shapes the output "shapes" joins
	ops   []string
}

// fuzzModel generates a model. The same seed gives the same model.
func fuzzModel(t *testing.T, seed uint64, opset int) fuzzed {
	t.Helper()
	f := &fuzzer{Rand: rand.New(rand.NewPCG(seed, 14)), opset: opset, graph: &onnxpb.GraphProto{Name: "fuzzed"}} //nolint:gosec // a seeded generator
	x := tensor{name: "x", dims: []int{2 + f.IntN(2)}}
	for range f.IntN(4) {
		x.dims = append(x.dims, 1+f.IntN(5))
	}
	f.vals = []tensor{x}
	for range 3 + f.IntN(6) {
		f.step()
	}
	y := f.vals[len(f.vals)-1]
	if f.coin(0.5) { // a second path
		v := f.vals[f.IntN(len(f.vals))]
		y = f.node("Add", nil, y.dims, y, f.node("ReduceMean", attrs{"keepdims": 0}, nil, f.node("Tanh", nil, v.dims, v)))
	}
	y = f.node("Reshape", nil, []int{y.size()}, y, f.ints(-1))
	out := fuzzed{x: x.dims, y: y.dims, ops: f.used}
	var shapes []tensor
	for _, n := range f.graph.Node {
		out.names = append(out.names, n.Output...)
	}
	for _, name := range out.names {
		shapes = append(shapes, f.node("Shape", nil, []int{1}, tensor{name: name}))
	}
	joined := f.node("Concat", attrs{"axis": 0}, nil, shapes...)
	port := func(name string, t onnx.DType, dims []int) *onnxpb.ValueInfoProto {
		shape := &onnxpb.TensorShapeProto{}
		for _, d := range dims {
			shape.Dim = append(shape.Dim, &onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: int64(d)}})
		}
		return &onnxpb.ValueInfoProto{Name: name, Type: &onnxpb.TypeProto{TensorType: &onnxpb.TypeProto_Tensor{ElemType: int32(t), Shape: shape}}}
	}
	f.graph.Input = []*onnxpb.ValueInfoProto{port("x", onnx.Float, x.dims)}
	f.graph.Output = []*onnxpb.ValueInfoProto{port(y.name, onnx.Float, y.dims), port(joined.name, onnx.Int64, []int{-1})}
	data, err := proto.Marshal(&onnxpb.ModelProto{IrVersion: 8, OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: int64(opset)}}, Graph: f.graph})
	must(t, err)
	out.model, err = modelfile.ReadModel(data)
	must(t, err)
	return out
}

// step adds one random operation.
func (f *fuzzer) step() {
	families := []func(*fuzzer) tensor{(*fuzzer).smooth, (*fuzzer).kinked, (*fuzzer).binary, (*fuzzer).product, (*fuzzer).reduction, (*fuzzer).move, (*fuzzer).move, (*fuzzer).layer, (*fuzzer).dynamic}
	f.add(families[f.IntN(len(families))](f))
}
