package operator_test

import (
	"math"
	"testing"

	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/onnx"
	"ddiff/restore/operator"
)

// Steps compute phase retrieval with half as many moduli. Distances of measurements, and the gradient of one, are those of the whole measurement.
func TestShortMeasurement(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		shape  operator.Shape
		params map[string]float64
	}{
		{operator.Shape{Channels: 3, Height: 32, Width: 24}, nil},
		{operator.Shape{Channels: 1, Height: 24, Width: 40}, map[string]float64{"oversample": 1, "signed": 1}},
	} {
		op := operator.Build(t, operator.PhaseRetrieval, tt.params, tt.shape)
		g := onnx.NewGraph(onnx.DefaultOpset)
		x := g.Input("x", onnx.Float, tt.shape.Dims(1)...)
		long, short := g.Input("long", onnx.Float, op.MeasurementDims(1)...), g.Input("short", onnx.Float, op.ShortDims(1)...)
		var values []onnx.Value
		for _, apply := range []struct {
			build func(g *onnx.Graph, x, draws onnx.Value) (operator.Applied, error)
			y     onnx.Value
		}{{op.Apply, long}, {op.ApplyShort, short}} {
			a, err := apply.build(g, x, onnx.Value{})
			must(t, err)
			residual := g.Minus(apply.y, a.Y)
			pull, err := a.Gradient(residual)
			must(t, err)
			values = append(values, g.ReduceSum(g.Mul(residual, residual), 1, 2, 3), pull)
		}
		y := normal(op.MeasurementSize(), 2, 0.7) // far from symmetric
		out := onnxtest.Compute(t, g, []onnx.Value{x, long, short}, values, normal(tt.shape.Size(), 1, 0.3), y, op.Short(y))
		if got, want := float64(out[2][0]), float64(out[0][0]); !(math.Abs(got-want) <= 1e-5*want) {
			t.Errorf("%v: the squared distance is %g, want %g", tt.shape, got, want)
		}
		for i, want := range out[1] {
			if got := out[3][i]; !(math.Abs(float64(got-want)) <= 1e-5) {
				t.Fatalf("%v: entry %d of the gradient is %g, want %g", tt.shape, i, got, want)
			}
		}
		if len(op.Short(y)) > len(y)*5/8 {
			t.Errorf("%v: %d entries of %d", tt.shape, len(op.Short(y)), len(y))
		}
	}
}
