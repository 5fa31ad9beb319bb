package solver

import (
	"testing"

	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/restore/method"
	"ddiff/restore/operator"
)

// Runs with another model, and other builds, are not solved by a compiled solver, which stays as it was.
func TestReuseRefuses(t *testing.T) {
	t.Parallel()
	rt, p, op := onnxtest.Runtime(t), bundled(t), newOperator(t, operator.SuperResolution, small)
	s := config(t, op.Task, 12)
	run := newRun(t, p, op, s)
	used := compile(t, rt, run, 2, Build{})
	refused := func(name string, rt *onnxruntime.Runtime, run *method.Run, n int, build Build) {
		t.Helper()
		before := used.run
		if ok, err := used.Reuse(rt, run, n, build); err != nil || ok || used.run != before {
			t.Errorf("%s: reused %v, error %v", name, ok, err)
		}
	}
	blur := newOperator(t, operator.GaussianDeblur, small)
	refused("a method", rt, newRun(t, p, op, resolve(t, method.Request{Method: "reddiff", Preset: "natural", Task: op.Task, Steps: 12})), 2, Build{})
	refused("a gradient", rt, newRun(t, p, op, with(s, "gradient", "squared")), 2, Build{})
	refused("a task", rt, newRun(t, p, blur, config(t, blur.Task, 12)), 2, Build{})
	refused("another size", rt, newRun(t, p, newOperator(t, op.Task, operator.Shape{Channels: 3, Height: 48, Width: 32}), s), 2, Build{})
	refused("another prior", rt, newRun(t, bundled(t), op, s), 2, Build{})
	refused("a batch", rt, run, 3, Build{})
	refused("a precision", rt, run, 2, Build{Precision: onnxruntime.FP16})
	refused("a runtime", rt.Threaded(1), run, 2, Build{})
	if _, err := used.Reuse(rt, run, 2, Build{Streams: -1}); err == nil {
		t.Error("a wrong build is accepted")
	}
	if ok, err := used.Reuse(rt, newRun(t, p, op, config(t, op.Task, 15)), 2, Build{}); err != nil || !ok || used.Steps() != 15 {
		t.Errorf("more steps: reused %v, %d steps, error %v", ok, used.Steps(), err)
	}
}
