package operator

import (
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"

	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/onnx/onnxtest"
)

// TestLongOperators: operators of long images have the gradient of finite differences and the adjoint, and contain no constant that
// grows with the square of the side. Nor does the memory of a baseline, so no other test may run beside it.
func TestLongOperators(t *testing.T) {
	rt := onnxtest.Runtime(t)
	for _, task := range []string{GaussianDeblur, SuperResolution, MotionDeblur, NonlinearDeblur} {
		shape := Shape{Channels: 1, Height: 16, Width: 1056}
		op := Build(t, task, map[string]float64{}, shape)
		if linear := task == GaussianDeblur || task == SuperResolution; (op.expression.Adjoint != nil) != linear {
			t.Errorf("%s: an adjoint: %v", task, !linear)
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
		if task == NonlinearDeblur {
			continue
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		op.Baseline(make([]float32, op.MeasurementSize()))
		if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 1<<20 {
			t.Errorf("%s: the baseline allocates %d bytes", task, after.TotalAlloc-before.TotalAlloc)
		}
		draw, err := op.Encode(op.Draw(noise.Key{8}))
		if err != nil {
			t.Fatal(err)
		}
		f, err := newForward(rt, op, 1, true)
		if err != nil {
			t.Fatal(err)
		}
		x, w := make([]float32, shape.Size()), make([]float32, op.MeasurementSize())
		noise.Normal(x, noise.Key{1}, noise.Start, 0, 1)
		noise.Normal(w, noise.Key{2}, noise.Start, 0, 1)
		if err := f.run(t.Context(), x, draw, w); err != nil {
			t.Fatal(err)
		}
		if a, b := dot(f.outputs[0].F32, w), dot(x, f.outputs[1].F32); math.Abs(a-b) > 1e-3*max(1, math.Abs(a)) {
			t.Errorf("%s: ⟨Ax, w⟩ is %g, ⟨x, Aᵀw⟩ is %g", task, a, b)
		}
		f.Close()
	}
}

// TestSpectrum: the memory of a filter in the frequency domain has two values for each pixel of the extended image; a filter of
// matrices needs none.
func TestSpectrum(t *testing.T) {
	t.Parallel()
	for width, limits := range map[int][2]int{1056: {2 * 64 * 1056, 3 * 64 * 1056}, 128: {}} {
		op := Build(t, MotionDeblur, map[string]float64{"size": 32}, Shape{Channels: 3, Height: 64, Width: width})
		if n := op.Spectrum(); n < limits[0] || n > limits[1] {
			t.Errorf("%d×64 pixels: %d values, want from %d to %d", width, n, limits[0], limits[1])
		}
	}
}

// TestLongKernels: a long image takes kernels up to the parameter size, and one line names the value for a larger one.
func TestLongKernels(t *testing.T) {
	t.Parallel()
	op := Build(t, MotionDeblur, map[string]float64{"size": 32}, Shape{Channels: 3, Height: 64, Width: 1056})
	flat := func(size int) *Draw {
		d := &Draw{Name: "kernel", Dims: []int{size, size}, Data: make([]float32, size*size)}
		d.Data[0] = 1
		return d
	}
	if _, err := op.Encode(flat(9)); err != nil {
		t.Errorf("a kernel of 9 pixels: %v", err)
	}
	_, err := op.Encode(flat(11))
	if !errors.Is(err, ErrParam) || !strings.Contains(err.Error(), "kernel: it has 11 pixels, the parameter size permits 9 in an image of 1056×64; set size to 44 or more") {
		t.Errorf("a kernel of 11 pixels: %v", err)
	}
	op = Build(t, MotionDeblur, map[string]float64{"size": 44}, op.Image)
	if _, err := op.Encode(flat(11)); err != nil {
		t.Errorf("a kernel of 11 pixels with size 44: %v", err)
	}
}
