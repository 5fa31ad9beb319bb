package onnx_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"ddiff/internal/restore/onnx/infer"
	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/onnx"
)

// fuzzer builds one random model from x to y in the forms that exporters write. Every operation that has a kink gets
// values away from it, so that finite differences are exact.
type fuzzer struct {
	*rand.Rand
	opset int
	graph *onnx.Graph
	vals  []onnx.Value // that depend on x
	names []string     // outputs of nodes
	used  []string     // operations
}

// attrs are the attributes of a generated node, numbers as float64.
type attrs map[string]any

// node adds a node with one output of the given dimensions.
func (f *fuzzer) node(op string, a attrs, dims []int, inputs ...onnx.Value) onnx.Value {
	return f.nodes(op, a, [][]int{dims}, inputs...)[0]
}

// nodes adds a node with several outputs.
func (f *fuzzer) nodes(op string, a attrs, dims [][]int, inputs ...onnx.Value) []onnx.Value {
	encoded := map[string]any{}
	for name, v := range a {
		if x, ok := v.(float64); ok {
			v = float32(x)
		}
		encoded[name] = v
	}
	out := f.graph.ApplyAll(op, onnx.Float, dims, encoded, inputs...)
	for _, v := range out {
		f.names = append(f.names, v.Name)
	}
	f.used = append(f.used, op)
	return out
}

// ints adds an int64 vector.
func (f *fuzzer) ints(data ...int) onnx.Value { return f.graph.Ints(data...) }

// floats adds a float constant.
func (f *fuzzer) floats(dims []int, value func(i int) float64) onnx.Value {
	data := make([]float32, infer.Size(dims))
	for i := range data {
		data[i] = float32(value(i))
	}
	return f.graph.Const(data, dims...)
}

func (f *fuzzer) scalar(x float64) onnx.Value { return f.floats(nil, func(int) float64 { return x }) }

// weights adds a normal constant with the given deviation.
func (f *fuzzer) weights(deviation float64, dims ...int) onnx.Value {
	return f.floats(dims, func(int) float64 { return deviation * f.NormFloat64() })
}

// coin is true with the given chance.
func (f *fuzzer) coin(chance float64) bool { return f.Float64() < chance }

// pick returns a value that depends on x, mostly a late one.
func (f *fuzzer) pick() onnx.Value {
	if f.coin(0.7) {
		return f.vals[len(f.vals)-1]
	}
	return f.vals[f.IntN(len(f.vals))]
}

// ranked returns a value of the given rank, reshaped if none has it.
func (f *fuzzer) ranked(rank int) onnx.Value {
	v := f.pick()
	if v.Rank() == rank {
		return v
	}
	dims := append([]int{}, v.Dims...)
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
func (f *fuzzer) bounded(v onnx.Value, c func(i int) float64) onnx.Value {
	t := f.node("Tanh", nil, v.Dims, f.node("Mul", nil, v.Dims, v, f.scalar(1.5)))
	t = f.node("Mul", nil, v.Dims, t, f.scalar(0.3))
	return f.node("Add", nil, v.Dims, t, f.floats(v.Dims, c))
}

// sided returns values between 0.7 and 1.3 or their negatives, away from kinks at 0.
func (f *fuzzer) sided(v onnx.Value) onnx.Value {
	return f.bounded(v, func(int) float64 { return float64(2*f.IntN(2) - 1) })
}

// above returns values between 0.7 and 1.3.
func (f *fuzzer) above(v onnx.Value) onnx.Value { return f.bounded(v, func(int) float64 { return 1 }) }

// apart returns values with distances that no step bridges.
func (f *fuzzer) apart(v onnx.Value) onnx.Value {
	order := f.Perm(v.Size())
	c := f.floats(v.Dims, func(i int) float64 { return float64(order[i]) - float64(len(order))/2 })
	t := f.node("Tanh", nil, v.Dims, v)
	t = f.node("Add", nil, v.Dims, f.node("Mul", nil, v.Dims, t, f.scalar(0.3)), c)
	return f.node("Mul", nil, v.Dims, t, f.scalar(3/float64(len(order))))
}

// add makes v a candidate for further operations.
func (f *fuzzer) add(v onnx.Value) {
	const limit = 600
	if v.Rank() > 5 {
		v = f.node("Flatten", nil, []int{v.Dims[0], v.Size() / v.Dims[0]}, v)
	}
	if v.Size() > limit {
		dims := slices.Clone(v.Dims)
		ax := 0
		for i, d := range dims {
			if d > dims[ax] {
				ax = i
			}
		}
		dims[ax] = max(1, dims[ax]*limit/v.Size())
		v = f.node("Slice", nil, dims, v, f.ints(0), f.ints(dims[ax]), f.ints(ax))
	}
	if f.coin(0.3) {
		v = f.node("Tanh", nil, v.Dims, v)
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
	f := &fuzzer{Rand: rand.New(rand.NewPCG(seed, 14)), opset: opset, graph: onnx.NewGraph(opset)} //nolint:gosec // a seeded generator
	dims := []int{2 + f.IntN(2)}
	for range f.IntN(4) {
		dims = append(dims, 1+f.IntN(5))
	}
	x := f.graph.Input("x", onnx.Float, dims...)
	f.vals = []onnx.Value{x}
	for range 3 + f.IntN(6) {
		f.step()
	}
	y := f.vals[len(f.vals)-1]
	if f.coin(0.5) { // a second path
		v := f.vals[f.IntN(len(f.vals))]
		y = f.node("Add", nil, y.Dims, y, f.node("ReduceMean", attrs{"keepdims": 0}, nil, f.node("Tanh", nil, v.Dims, v)))
	}
	y = f.node("Reshape", nil, []int{y.Size()}, y, f.ints(-1))
	out := fuzzed{x: x.Dims, y: y.Dims, ops: f.used, names: slices.Clone(f.names)}
	var shapes []onnx.Value
	for _, name := range out.names {
		shapes = append(shapes, f.node("Shape", nil, []int{1}, onnx.Value{Name: name}))
	}
	joined := f.node("Concat", attrs{"axis": 0}, []int{-1}, shapes...)
	joined.DType = onnx.Int64
	f.graph.Output("y", y)
	f.graph.Output("shapes", joined)
	out.model = onnxtest.Parse(t, f.graph)
	return out
}

// step adds one random operation.
func (f *fuzzer) step() {
	families := []func(*fuzzer) onnx.Value{(*fuzzer).smooth, (*fuzzer).kinked, (*fuzzer).binary, (*fuzzer).product, (*fuzzer).reduction, (*fuzzer).move, (*fuzzer).move, (*fuzzer).layer, (*fuzzer).dynamic}
	f.add(families[f.IntN(len(families))](f))
}
