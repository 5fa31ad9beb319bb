package operator_test

import (
	"slices"
	"testing"

	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/onnx"
	"ddiff/restore/operator"
)

// A saturated entry has the gradient 0, so that one at the wrong end stays there. Recover passes it, with the factor of A, but not
// where the residual is noise or leads outwards, and agrees with the gradient inside the range.
func TestHDRRecover(t *testing.T) {
	t.Parallel()
	op := operator.Build(t, operator.HDR, nil, operator.Shape{Channels: 1, Height: 8, Width: 8})
	const limit = 0.2
	x, y := make([]float32, 64), make([]float32, 64)
	var gradient, recovered []float32
	for i, c := range []struct{ x, y, gradient, recovered float32 }{
		{0.9, -1, 0, -4},    // at the wrong end: 2·(y − A(x))
		{-0.9, 1, 0, 4},     // the same at the dark end
		{0.6, 0, 0, -2},     // y inside the range
		{0.9, 0.9, 0, 0},    // noise below the limit
		{-0.9, -0.85, 0, 0}, // the same at the dark end
		{0.9, 1.5, 0, 0},    // outwards, however far
		{-0.9, -1.5, 0, 0},  // the same at the dark end
		{0.25, -1, -3, -3},  // inside the range
		{0.5, -1, -4, -4},   // A(x) is 1 without being cut
		{-0.25, -0.45, 0.1, 0.1},
	} {
		x[i], y[i] = c.x, c.y
		gradient, recovered = append(gradient, c.gradient), append(recovered, c.recovered)
	}
	both := append(slices.Clone(x), y...)
	for name, c := range map[string]struct {
		want  []float32
		limit float32
	}{"gradient": {gradient, 0}, "recover": {recovered, limit}} {
		got := evaluateGraph(t, both, []int{2, 1, 8, 8}, func(g *onnx.Graph, v onnx.Value) onnx.Value {
			applied, err := op.Apply(g, g.Slice(v, 0, 0, 1), onnx.Value{})
			must(t, err)
			r := g.Minus(g.Slice(v, 0, 1, 2), applied.Y)
			out, err := applied.Gradient(r)
			if c.limit > 0 {
				out, err = applied.Recover(r, r, c.limit)
			}
			must(t, err)
			return out
		})
		for i, want := range c.want {
			if d := got[i] - want; !(d <= 1e-5 && d >= -1e-5) {
				t.Errorf("%s at x = %g, y = %g: %g, want %g", name, x[i], y[i], got[i], want)
			}
		}
	}
}

// An operator that does not saturate has the same gradient with and without Recover.
func TestRecoverWithoutSaturation(t *testing.T) {
	t.Parallel()
	op := operator.Build(t, operator.Denoise, nil, operator.Shape{Channels: 1, Height: 8, Width: 8})
	x := make([]float32, 64)
	x[0] = 3
	got := evaluateGraph(t, x, op.Image.Dims(1), func(g *onnx.Graph, v onnx.Value) onnx.Value {
		applied, err := op.Apply(g, v, onnx.Value{})
		must(t, err)
		out, err := applied.Recover(v, v, 0.2)
		must(t, err)
		return out
	})
	if !slices.Equal(got, x) {
		t.Errorf("%v, want the seed %v", got, x)
	}
}

// evaluateGraph computes f of one value.
func evaluateGraph(t *testing.T, v []float32, dims []int, f func(g *onnx.Graph, v onnx.Value) onnx.Value) []float32 {
	t.Helper()
	g := onnx.NewGraph(onnx.DefaultOpset)
	x := g.Input("x", onnx.Float, dims...)
	return onnxtest.Compute(t, g, []onnx.Value{x}, []onnx.Value{f(g, x)}, v)[0]
}
