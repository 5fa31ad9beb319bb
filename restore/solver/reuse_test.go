package solver

import (
	"slices"
	"testing"

	"ddiff/restore/method"
	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/onnx/onnxtest"
	"ddiff/restore/operator"
)

// A solver that is reused for other step sizes or times returns the pixels of a new one, also after it has solved. The model of ddrm has its settings as constants.
func TestReuse(t *testing.T) {
	t.Parallel()
	rt, p, op := onnxtest.Runtime(t), bundled(t), newOperator(t, operator.GaussianDeblur, small)
	probs := problems(t, op, 2, 0.05)
	solve := func(s *Solver) []Solution {
		t.Helper()
		got := solve(t, s, probs)
		return got
	}
	for _, c := range []struct {
		name, preset string
		changes      []any
	}{
		{"ddiff", "gradient", []any{"gamma0", 3, "b", 0.5, "t_gamma", 500}},
		{"ddiff", "natural", []any{"lambda", 5, "t_start", 300}},
		{"diffpir", "natural", []any{"lambda", 1, "zeta", 0.8}},
		{"daps", "natural", []any{"lr", 1e-5, "tau", 0.05}},
		{"dps", "natural", []any{"scale", 2}},
		{"reddiff", "natural", []any{"lr", 0.02}},
	} {
		name, changes := c.name, c.changes
		s := resolve(t, method.Request{Method: name, Preset: c.preset, Task: op.Task, Steps: 3})
		if name == "daps" {
			s = with(s, "chain_steps", 3)
		}
		first, second := newRun(t, p, op, s), newRun(t, p, op, with(s, changes...))
		used := compile(t, rt, first, 2, Build{})
		before := solve(used)
		if ok, err := used.Reuse(rt, second, 2, Build{}); err != nil || !ok {
			t.Errorf("%s is compiled again for %v: %v", name, changes, err)
			continue
		}
		got, want := solve(used), solve(compile(t, rt, second, 2, Build{}))
		for i := range want {
			if !slices.Equal(got[i].X, want[i].X) || slices.Equal(got[i].X, before[i].X) {
				t.Errorf("%s, image %d: not the pixels of a new solver", name, i)
			}
		}
	}
}

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
