package onnx_test

import (
	"slices"
	"testing"

	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/onnx"
)

// TestDetach: the gradient of x·detach(x) is detach(x) alone, and that of a quantiser that passes gradients on,
// detach(q) + x − detach(x), is one, with the value q exactly.
func TestDetach(t *testing.T) {
	g := onnx.NewGraph(onnx.DefaultOpset)
	x := g.Input("x", onnx.Float, 3)
	seed := g.Const([]float32{1, 1, 1}, 3)
	product, err := g.Gradient(g.Mul(x, g.Detach(x)), x, seed)
	must(t, err)
	q := g.Clip(x, 0.1, 0.2)
	through := g.Add(g.Detach(q), g.Minus(x, g.Detach(x)))
	passed, err := g.Gradient(through, x, seed)
	must(t, err)
	in := []float32{-3.3, 0.15, 7}
	got := onnxtest.Compute(t, g, []onnx.Value{x}, []onnx.Value{product, through, passed}, in)
	for i, want := range [][]float32{in, {0.1, 0.15, 0.2}, {1, 1, 1}} {
		if !slices.Equal(got[i], want) {
			t.Errorf("output %d: %v, want %v", i, got[i], want)
		}
	}
}
