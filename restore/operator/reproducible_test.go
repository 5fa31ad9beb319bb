package operator_test

import (
	"slices"
	"testing"

	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/operator"
)

// TestMeasurementIsReproducible measures one image again and again with several threads: every measurement equals the one
// of a single thread bit by bit. At this size the runtime divides the operations among its threads.
func TestMeasurementIsReproducible(t *testing.T) {
	single, err := onnxtest.Runtime(t).With(onnxruntime.Config{Provider: onnxruntime.ProviderCPU, Threads: 1})
	must(t, err)
	defer single.Close()
	several, err := onnxtest.Runtime(t).With(onnxruntime.Config{Provider: onnxruntime.ProviderCPU, Threads: 4})
	must(t, err)
	defer several.Close()
	shape := operator.Shape{Channels: 3, Height: 128, Width: 128}
	var key noise.Key
	x := make([]float32, shape.Size())
	noise.Normal(x, key, noise.Start, 0, 0.5)
	for _, d := range operator.Builtin() {
		op := operator.Build(t, d.Name, nil, shape)
		draw, err := op.Encode(op.Draw(key))
		must(t, err)
		measure := func(rt *onnxruntime.Runtime, times int) [][]float32 {
			f, err := operator.NewForward(rt, op)
			must(t, err)
			defer f.Close()
			var out [][]float32
			for range times {
				y, err := f.Measure(t.Context(), x, draw, operator.Noise{Sigma: 0.05}, key)
				must(t, err)
				out = append(out, slices.Clone(y))
			}
			return out
		}
		want := measure(single, 1)[0]
		for i, y := range measure(several, 10) {
			if !slices.Equal(y, want) {
				t.Errorf("%s: measurement %d with four threads differs from the one with a single thread", d.Name, i+1)
				break
			}
		}
	}
}
