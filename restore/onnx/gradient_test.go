package onnx_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"ddiff/restore/noise"
	"ddiff/restore/onnx"
	"ddiff/restore/onnx/onnxtest"
)

// run compiles a graph for the CPU and evaluates its outputs.
func run(t *testing.T, g *onnx.Graph, inputs, outputs []onnx.Value, data ...[]float32) [][]float32 {
	t.Helper()
	return runOn(t, onnxtest.Runtime(t), g, inputs, outputs, data...)
}

// runOn compiles a graph for a runtime and evaluates its outputs.
func runOn(t *testing.T, rt *onnx.Runtime, g *onnx.Graph, inputs, outputs []onnx.Value, data ...[]float32) [][]float32 {
	t.Helper()
	model, err := g.Marshal("test")
	if err != nil {
		t.Fatal(err)
	}
	var in, out []string
	for _, v := range inputs {
		in = append(in, v.Name)
	}
	for _, v := range outputs {
		out = append(out, v.Name)
	}
	s, err := rt.NewSession(model, in, out)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	x, err := onnx.NewTensors(inputs...)
	if err != nil {
		t.Fatal(err)
	}
	defer onnx.CloseTensors(x)
	for i := range data {
		copy(x[i].F32, data[i])
	}
	y, err := onnx.NewTensors(outputs...)
	if err != nil {
		t.Fatal(err)
	}
	defer onnx.CloseTensors(y)
	if err := s.Run(context.Background(), x, y); err != nil {
		t.Fatal(err)
	}
	var res [][]float32
	for _, v := range y {
		res = append(res, v.F32)
	}
	return res
}

func random(n int, seed uint32) []float32 {
	x := make([]float32, n)
	noise.Normal(x, noise.Key{seed}, noise.Measurement, 0, 1)
	return x
}

// Each rule of reverse mode against central differences, in every argument that has one.
func TestGradientRules(t *testing.T) {
	t.Parallel()
	type build func(g *onnx.Graph, x onnx.Value) onnx.Value
	dims := []int{2, 3, 4, 6}
	other := func(g *onnx.Graph, seed uint32, dims ...int) onnx.Value {
		n := 1
		for _, d := range dims {
			n *= d
		}
		data := random(n, seed)
		for i := range data {
			data[i] = 1.5 + float32(math.Tanh(float64(data[i])))
		}
		return g.Const(data, dims...)
	}
	positive := func(g *onnx.Graph, x onnx.Value) onnx.Value {
		return g.Add(g.Mul(g.Mul(x, x), g.Scalar(0.3)), g.Scalar(0.5))
	}
	for name, f := range map[string]build{
		"add":            func(g *onnx.Graph, x onnx.Value) onnx.Value { return g.Add(x, g.Mul(x, x)) },
		"add broadcast":  func(g *onnx.Graph, x onnx.Value) onnx.Value { return g.Add(g.Slice(x, 1, 0, 1), x) },
		"add lower rank": func(g *onnx.Graph, x onnx.Value) onnx.Value { return g.Mul(x, g.ReduceSum(g.Reshape(x, 24, 6), 0)) },
		"minus":          func(g *onnx.Graph, x onnx.Value) onnx.Value { return g.Minus(g.Slice(x, 0, 0, 1), g.Mul(x, x)) },
		"mul broadcast":  func(g *onnx.Graph, x onnx.Value) onnx.Value { return g.Mul(x, g.Slice(x, 2, 1, 2)) },
		"div left":       func(g *onnx.Graph, x onnx.Value) onnx.Value { return g.Div(x, other(g, 3, 1, 3, 1, 1)) },
		"div right":      func(g *onnx.Graph, x onnx.Value) onnx.Value { return g.Div(other(g, 3, 6), positive(g, x)) },
		"neg":            func(g *onnx.Graph, x onnx.Value) onnx.Value { return g.Neg(g.Mul(x, x)) },
		"pow":            func(g *onnx.Graph, x onnx.Value) onnx.Value { return g.Pow(positive(g, x), 2.2) },
		"sqrt":           func(g *onnx.Graph, x onnx.Value) onnx.Value { return g.Sqrt(positive(g, x)) },
		"clip":           func(g *onnx.Graph, x onnx.Value) onnx.Value { return g.Clip(g.Mul(x, g.Scalar(50)), -10, 20) },
		"matmul left":    func(g *onnx.Graph, x onnx.Value) onnx.Value { return g.MatMul(other(g, 4, 5, 4), x) },
		"matmul right":   func(g *onnx.Graph, x onnx.Value) onnx.Value { return g.MatMul(x, other(g, 4, 6, 7)) },
		"matmul both":    func(g *onnx.Graph, x onnx.Value) onnx.Value { return g.MatMul(x, g.Transpose(x, 0, 1, 3, 2)) },
		"matmul broadcast": func(g *onnx.Graph, x onnx.Value) onnx.Value {
			return g.MatMul(g.Slice(x, 0, 0, 1), g.Transpose(x, 0, 1, 3, 2))
		},
		"transpose": func(g *onnx.Graph, x onnx.Value) onnx.Value {
			return g.Mul(g.Transpose(x, 2, 0, 3, 1), other(g, 5, 4, 2, 6, 3))
		},
		"reshape": func(g *onnx.Graph, x onnx.Value) onnx.Value { return g.Mul(g.Reshape(x, 12, 12), other(g, 6, 12, 12)) },
		"slice":   func(g *onnx.Graph, x onnx.Value) onnx.Value { return g.Mul(g.Slice(x, 3, 2, 5), other(g, 7, 3)) },
		"reverse": func(g *onnx.Graph, x onnx.Value) onnx.Value { return g.Mul(g.Reverse(x, 3), other(g, 8, 6)) },
		"concat": func(g *onnx.Graph, x onnx.Value) onnx.Value {
			return g.Mul(g.Concat(1, x, g.Mul(x, x), x), other(g, 9, 9, 1, 1))
		},
		"reduce": func(g *onnx.Graph, x onnx.Value) onnx.Value { return g.ReduceSum(g.Mul(x, x), 0, 2) },
		"unused": func(g *onnx.Graph, _ onnx.Value) onnx.Value { return other(g, 10, 3, 3) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := onnx.NewGraph(onnx.DefaultOpset)
			x := g.Input("x", onnx.Float, dims...)
			y := f(g, x)
			seed := g.Input("seed", onnx.Float, y.Dims...)
			dx, err := g.Gradient(y, x, seed)
			if err != nil {
				t.Fatal(err)
			}
			g.Output("y", y)
			g.Output("dx", dx)
			outs := []onnx.Value{{Name: "y", DType: onnx.Float, Dims: y.Dims}, {Name: "dx", DType: onnx.Float, Dims: dx.Dims}}
			at, along, s := random(x.Size(), 1), random(x.Size(), 2), random(y.Size(), 3)
			eval := func(h float64) ([]float32, []float32) {
				p := make([]float32, len(at))
				for i := range p {
					p[i] = at[i] + float32(h)*along[i]
				}
				r := run(t, g, []onnx.Value{x, seed}, outs, p, s)
				return r[0], r[1]
			}
			const h = 1e-2
			up, _ := eval(h)
			down, _ := eval(-h)
			half, _ := eval(h / 2)
			halfDown, _ := eval(-h / 2)
			_, grad := eval(0)
			want, got, size := 0.0, 0.0, 0.0
			for i := range s {
				d1, d2 := float64(up[i]-down[i])/(2*h), float64(half[i]-halfDown[i])/h
				want += float64(s[i]) * (4*d2 - d1) / 3
				size += math.Abs(float64(s[i]) * d1)
			}
			for i := range grad {
				got += float64(grad[i]) * float64(along[i])
			}
			if math.Abs(got-want) > 2e-3*size+1e-6 {
				t.Errorf("derivative %.6g, finite differences %.6g (scale %.3g)", got, want, size)
			}
		})
	}
}

func TestGradientUnknownOperation(t *testing.T) {
	t.Parallel()
	g := onnx.NewGraph(onnx.DefaultOpset)
	x := g.Input("x", onnx.Float, 2, 4)
	y := g.Norm(x)
	if _, err := g.Gradient(y, x, g.Const([]float32{1, 1}, 2)); !errors.Is(err, onnx.ErrNoGradient) {
		t.Errorf("error %v, want ErrNoGradient", err)
	}
}

// The modulus at the origin has the zero subgradient, not NaN.
func TestSqrtAtZero(t *testing.T) {
	t.Parallel()
	g := onnx.NewGraph(onnx.DefaultOpset)
	x := g.Input("x", onnx.Float, 3)
	y := g.Sqrt(g.Mul(x, x))
	d, err := g.Gradient(y, x, g.Const([]float32{1, 1, 1}, 3))
	if err != nil {
		t.Fatal(err)
	}
	g.Output("d", d)
	got := run(t, g, []onnx.Value{x}, []onnx.Value{{Name: "d", DType: onnx.Float, Dims: []int{3}}}, []float32{0, 2, -2})[0]
	for i, want := range []float32{0, 1, -1} {
		if math.Abs(float64(got[i]-want)) > 1e-6 {
			t.Errorf("derivative %v, want 0 1 -1", got)
		}
	}
}
