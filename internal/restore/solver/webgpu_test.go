package solver

import (
	"math"
	"slices"
	"testing"

	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/operator"
)

// Whole runs of each task.
func TestWebGPURuns(t *testing.T) {
	gpu := onnxtest.WebGPU(t)
	const n, size = 2, 32
	shape := operator.Shape{Channels: 3, Height: size, Width: size}
	p := gaussianPrior(t, n, shape, slices.Repeat([]float32{0.1}, shape.Size()))
	for _, info := range operator.Builtin() {
		t.Run(info.Name, func(t *testing.T) {
			op := newOperator(t, info.Name, shape)
			cfg := config(t, op.Task, 6)
			probs := problems(t, op, n, 0.05)
			want := solve(t, newSolver(t, p, op, cfg, n), probs)
			got := solve(t, compile(t, gpu, newRun(t, p, op, cfg), n, Build{}), probs)
			wantImages(t, got, want, 1e-3)
		})
	}
}

// The bundled prior.
func TestWebGPUBundled(t *testing.T) {
	gpu := onnxtest.WebGPU(t)
	op := newOperator(t, operator.SuperResolution, operator.Shape{Channels: 3, Height: 32, Width: 32})
	cfg := config(t, op.Task, 2)
	p := bundled(t)
	probs := problems(t, op, 1, 0.05)
	want := solve(t, newSolver(t, p, op, cfg, 1), probs)
	got := solve(t, compile(t, gpu, newRun(t, p, op, cfg), 1, Build{}), probs)
	// At the first step z is x_t over √ᾱ = 0.006: a difference of 10⁻⁴ in the prediction is
	// one of 0.02 in a pixel.
	if d := rms(got[0].X, want[0].X); !(d < 2e-3) {
		t.Errorf("differs by %.2g (root of the mean square), at most by %.2g", d, maxAbs(got[0].X, want[0].X))
	}
}

// A network of the published architecture, with attention, runs on the device as a whole.
func TestWebGPUAttention(t *testing.T) {
	gpu := onnxtest.WebGPU(t)
	p := randomPrior(t, 32)
	shape := operator.Shape{Channels: 3, Height: 32, Width: 32}
	op := newOperator(t, operator.HDR, shape)
	cfg := config(t, op.Task, 2)
	probs := problems(t, op, 1, 0.05)
	want := solve(t, newSolver(t, p, op, cfg, 1), probs)
	got := solve(t, compile(t, gpu, newRun(t, p, op, cfg), 1, Build{}), probs)
	if d := rms(got[0].X, want[0].X); !(d < 2e-3) {
		t.Errorf("differs by %.2g (root of the mean square)", d)
	}
}

func rms(a, b []float32) float64 {
	sum := 0.0
	for i, v := range a {
		sum += math.Pow(float64(v-b[i]), 2)
	}
	return math.Sqrt(sum / float64(len(a)))
}
