package operator

import (
	"math"
	"testing"

	"ddiff/restore/noise"
	"ddiff/restore/onnx"
	"ddiff/restore/onnx/onnxtest"
)

// evaluate computes f of one value.
func evaluate(t *testing.T, v []float32, dims []int, f func(g *onnx.Graph, v onnx.Value) onnx.Value) []float32 {
	t.Helper()
	g := onnx.NewGraph(onnx.DefaultOpset)
	x := g.Input("x", onnx.Float, dims...)
	y := f(g, x)
	g.Output("y", y)
	model, err := g.Marshal("test")
	if err != nil {
		t.Fatal(err)
	}
	s, err := onnxtest.Runtime(t).NewSession(model, []string{"x"}, []string{"y"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	tensors, err := onnx.NewTensors(x, y)
	if err != nil {
		t.Fatal(err)
	}
	defer onnx.CloseTensors(tensors)
	copy(tensors[0].F32, v)
	if err := s.Run(t.Context(), tensors[:1], tensors[1:]); err != nil {
		t.Fatal(err)
	}
	return append([]float32(nil), tensors[1].F32...)
}

// TestBand: a band equals its matrix, and the adjoint its transpose, for bands that are narrower and wider than a block and at the border.
func TestBand(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]*band{
		"narrow blur": reflecting(333, gaussianTaps(13, 1.5)),
		"wide blur":   reflecting(333, gaussianTaps(301, 60)),
		"one block":   reflecting(40, gaussianTaps(13, 1.5)),
		"smaller":     bicubicDown(720, 4),
		"larger":      bicubicUp(90, 4),
	} {
		for _, axis := range []int{rowAxis, colAxis} {
			for _, m := range []*band{b, b.transposed()} {
				dims := []int{1, 2, 6, 6}
				dims[axis] = m.cols
				v := make([]float32, 12*m.cols)
				noise.Normal(v, noise.Key{5}, noise.Start, 0, 1)
				got := evaluate(t, v, dims, func(g *onnx.Graph, x onnx.Value) onnx.Value { return m.apply(g, x, axis) })
				want := evaluate(t, v, dims, func(g *onnx.Graph, x onnx.Value) onnx.Value { return along(g, m.dense(), x, axis) })
				for i := range want {
					if math.Abs(float64(got[i]-want[i])) > 1e-5 {
						t.Fatalf("%s, axis %d: element %d is %g, want %g", name, axis, i, got[i], want[i])
					}
				}
			}
		}
		transposed, dense := b.transposed().dense(), b.dense().transposed()
		for i := range dense.data {
			if transposed.data[i] != dense.data[i] {
				t.Fatalf("%s: the transposed band differs at element %d", name, i)
			}
		}
	}
}

// TestLongOperators: the operators of long images are those of their matrices, their gradient is the adjoint, and they contain no constant that
// grows with the square of the side.
func TestLongOperators(t *testing.T) {
	t.Parallel()
	rt := onnxtest.Runtime(t)
	for _, task := range []string{GaussianDeblur, SuperResolution} {
		shape := Shape{Channels: 1, Height: 16, Width: 1056}
		op, err := Builtin().New(task, map[string]float64{}, shape)
		if err != nil {
			t.Fatal(err)
		}
		if op.expression.Adjoint == nil {
			t.Fatalf("%s: no adjoint", task)
		}
		if r, err := op.CheckGradient(t.Context(), rt); err != nil {
			t.Errorf("%s: %v, %+v", task, err, r)
		}
		model, _, _, err := op.model(1, true)
		if err != nil {
			t.Fatal(err)
		}
		if len(model) > 1<<20 {
			t.Errorf("%s: the model has %d bytes, matrices alone have %d", task, len(model), 4*1056*1056)
		}
		// The part of the image that fits a matrix is blurred by one.
		f, err := newForward(rt, op, 1, true)
		if err != nil {
			t.Fatal(err)
		}
		x, w := make([]float32, shape.Size()), make([]float32, op.MeasurementSize())
		noise.Normal(x, noise.Key{1}, noise.Start, 0, 1)
		noise.Normal(w, noise.Key{2}, noise.Start, 0, 1)
		if err := f.run(t.Context(), x, nil, w); err != nil {
			t.Fatal(err)
		}
		if a, b := dot(f.outputs[0].F32, w), dot(x, f.outputs[1].F32); math.Abs(a-b) > 1e-3*max(1, math.Abs(a)) {
			t.Errorf("%s: ⟨Ax, w⟩ is %g, ⟨x, Aᵀw⟩ is %g", task, a, b)
		}
		f.Close()
	}
}
