package onnx_test

import (
	"cmp"
	"fmt"
	"math"
	"testing"

	"ddiff/internal/restore/onnx/infer"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/onnx"
)

// layer is one operation of a network. Its gradient with respect to input wrt is tested.
type layer struct {
	op     string
	attrs  map[string]any
	inputs []operand
	out    []int
	wrt    int
	opset  int // 0: the default
}

// operand is an input of a layer: its constant value, or its values where it is x.
type operand struct {
	dims  []int
	value func(g *onnx.Graph, seed uint32) onnx.Value
	data  func(n int, seed uint32) []float32
}

// normal is an operand with normal values.
func normal(dims ...int) operand { return drawn(onnxtest.Random, dims) }

// positive is an operand with values from 0.5 to 2.5.
func positive(dims ...int) operand {
	return drawn(func(n int, seed uint32) []float32 {
		data := onnxtest.Random(n, seed)
		for i := range data {
			data[i] = 1.5 + float32(math.Tanh(float64(data[i])))
		}
		return data
	}, dims)
}

// apart is an operand whose values differ by 0.1 or more, so that a small step does not change their order.
func apart(dims ...int) operand {
	return drawn(func(n int, _ uint32) []float32 {
		data := make([]float32, n)
		for i := range data {
			data[i] = 0.1*float32((i*37)%n) - 0.05*float32(n)
		}
		return data
	}, dims)
}

func drawn(data func(n int, seed uint32) []float32, dims []int) operand {
	value := func(g *onnx.Graph, seed uint32) onnx.Value { return g.Const(data(infer.Size(dims), seed), dims...) }
	return operand{dims, value, data}
}

// given is an operand with the given values.
func given(x ...float32) operand {
	return operand{value: func(g *onnx.Graph, _ uint32) onnx.Value { return g.Const(x, len(x)) }}
}

// integers is an operand of whole numbers.
func integers(x ...int) operand {
	return operand{value: func(g *onnx.Graph, _ uint32) onnx.Value { return g.Ints(x...) }}
}

// omitted is an optional input that is absent.
func omitted() operand {
	return operand{value: func(*onnx.Graph, uint32) onnx.Value { return onnx.Value{} }}
}

// apply returns the layer op(inputs) with the shape out.
func apply(op string, out []int, attrs map[string]any, inputs ...operand) layer {
	return layer{op: op, attrs: attrs, inputs: inputs, out: out}
}

// by returns the layer as a function of another input.
func (l layer) by(k int) layer {
	l.wrt = k
	return l
}

// at returns the layer for another operator set.
func (l layer) at(opset int) layer {
	l.opset = opset
	return l
}

func ints(x ...int) []int { return x }

// gradient returns the graph of the layer with its gradient: x, seed, y and dx.
func (l layer) gradient() (g *onnx.Graph, x, seed, y, dx onnx.Value, err error) {
	g = onnx.NewGraph(cmp.Or(l.opset, onnx.DefaultOpset))
	x = g.Input("x", onnx.Float, l.inputs[l.wrt].dims...)
	var inputs []onnx.Value
	for i, in := range l.inputs {
		if i == l.wrt {
			inputs = append(inputs, x)
		} else {
			inputs = append(inputs, in.value(g, uint32(i)))
		}
	}
	y = g.Apply(l.op, onnx.Float, l.out, l.attrs, inputs...)
	seed = g.Input("seed", onnx.Float, y.Dims...)
	dx, err = g.Gradient(y, x, seed)
	return g, x, seed, y, dx, err
}

// check compares the gradient with central differences.
func (l layer) check(t *testing.T) {
	t.Helper()
	g, x, seed, y, dx, err := l.gradient()
	must(t, err)
	g.Output("y", y)
	g.Output("dx", dx)
	e := newEvaluation(t, g, []onnx.Value{x, seed}, onnx.Value{Name: "y", DType: onnx.Float, Dims: y.Dims},
		onnx.Value{Name: "dx", DType: onnx.Float, Dims: dx.Dims})
	if rel := e.compareDifferences(l.inputs[l.wrt].data(x.Size(), 1), y.Size()); !(rel <= 1e-3) {
		t.Errorf("relative error %.2g of the derivative, want 1e-3 or less", rel)
	} else {
		gradients.record(rel)
	}
}

// Each rule of a network's operations against central differences.
func TestGradientLayers(t *testing.T) {
	t.Parallel()
	for family, layers := range map[string]map[string]layer{
		"conv": convLayers(), "conv transpose": convTransposeLayers(), "resize": resizeLayers(), "pool": poolLayers(),
		"norm": normLayers(), "softmax": softmaxLayers(), "move": moveLayers(),
	} {
		for name, l := range layers {
			t.Run(fmt.Sprint(family, "/", name), func(t *testing.T) {
				t.Parallel()
				l.check(t)
			})
		}
	}
}
