package solver

import (
	"errors"
	"strings"
	"testing"

	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/restore/method"
	"ddiff/restore/onnx"
	"ddiff/restore/operator"
)

// TestDivisible: a step with a gradient through the network cannot be divided, and a fault of a method stays what it is.
func TestDivisible(t *testing.T) {
	t.Parallel()
	op, p := newOperator(t, operator.HDR, small), bundled(t)
	if err := Divisible(newRun(t, p, op, config(t, op.Task, 4))); err != nil {
		t.Errorf("ddiff: %v", err)
	}
	err := Divisible(newInner(t, 4))
	want := "OpenVINO computes only the network, and " + onnx.ErrDivide.Error() + " of method inner: "
	if !errors.Is(err, onnxruntime.ErrFallback) || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(want)) {
		t.Errorf("a gradient through the network: %v, want %q", err, want)
	}
	m := faulty{step: func(_ *method.Builder, next *method.Next) { delete(next.State, "x") }}
	run := planRun(t, m, method.Settings{Method: "two_draws", Steps: 4}, p, op)
	if err := Divisible(run); err == nil || errors.Is(err, onnxruntime.ErrFallback) || !strings.Contains(err.Error(), "leaves out state tensor") {
		t.Errorf("a fault of the method: %v", err)
	}
}
