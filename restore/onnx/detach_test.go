package onnx_test

import (
	"slices"
	"testing"

	"ddiff/restore/onnx"
	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/onnx/onnxtest"
)

// TestDetach: the gradient of x·detach(x) is detach(x) alone, and that of a quantiser that passes gradients on,
// detach(q) + x − detach(x), is one, with the value q exactly.
func TestDetach(t *testing.T) {
	rt := onnxtest.Runtime(t)
	g := onnx.NewGraph(onnx.DefaultOpset)
	x := g.Input("x", onnx.Float, 3)
	seed := g.Const([]float32{1, 1, 1}, 3)
	product, err := g.Gradient(g.Mul(x, g.Detach(x)), x, seed)
	must(t, err)
	q := g.Clip(x, 0.1, 0.2)
	through := g.Add(g.Detach(q), g.Minus(x, g.Detach(x)))
	passed, err := g.Gradient(through, x, seed)
	must(t, err)
	g.Output("product", product)
	g.Output("through", through)
	g.Output("passed", passed)
	data, err := g.Marshal("detach")
	must(t, err)
	s, err := rt.NewSession(data, []string{"x"}, []string{"product", "through", "passed"})
	must(t, err)
	defer s.Close()
	tensors, err := onnxruntime.NewTensors(x, product, through, passed)
	must(t, err)
	defer onnxruntime.CloseTensors(tensors)
	copy(tensors[0].F32, []float32{-3.3, 0.15, 7})
	must(t, s.Run(t.Context(), tensors[:1], tensors[1:]))
	for i, want := range [][]float32{{-3.3, 0.15, 7}, {0.1, 0.15, 0.2}, {1, 1, 1}} {
		if !slices.Equal(tensors[i+1].F32, want) {
			t.Errorf("output %d: %v, want %v", i, tensors[i+1].F32, want)
		}
	}
}
