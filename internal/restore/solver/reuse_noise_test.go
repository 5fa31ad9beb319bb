package solver

import (
	"testing"

	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/method"
	"ddiff/restore/operator"
)

// TestReuseForOtherNoise: another noise level of the measurement needs no other model.
func TestReuseForOtherNoise(t *testing.T) {
	if testing.Short() {
		t.Skip("solves with many settings: make test-all")
	}
	t.Parallel()
	p := bundled(t)
	for _, c := range []struct{ method, task string }{
		{"ddiff", operator.Denoise}, {"ddiff", operator.GaussianDeblur}, {"ddiff", operator.MotionDeblur}, {"ddiff", operator.NonlinearDeblur}, {"dpir", operator.Denoise}, {"diffpir", operator.SuperResolution},
	} {
		op := newOperator(t, c.task, small)
		settings := func(sigma float64) method.Settings {
			return resolve(t, method.Request{Method: c.method, Preset: "natural", Task: c.task, Sigma: &sigma})
		}
		s := newSolver(t, p, op, settings(0.05), 1)
		if ok, err := s.Reuse(onnxtest.Runtime(t), newRun(t, p, op, settings(0.06)), 1, Build{}); err != nil || !ok {
			t.Errorf("%s, %s: another noise level compiles: %v", c.method, c.task, err)
		}
	}
}
