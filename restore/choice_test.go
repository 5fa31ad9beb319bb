package restore_test

import (
	"slices"
	"testing"

	"ddiff/restore"
	"ddiff/restore/method"
	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/onnx/onnxtest"
	"ddiff/restore/operator"
	"ddiff/restore/solver"
)

// Beside the CPU provider, OpenVINO computes what only it can, what a measurement chose, and what a replay prefers; and
// nothing that it cannot.
func TestChoice(t *testing.T) {
	library := onnxtest.OpenVINOLibrary(t)
	rt, err := onnxtest.Runtime(t).With(onnxruntime.Config{Provider: onnxruntime.ProviderAuto, OpenVINO: library})
	must(t, err)
	defer rt.Close()
	other := rt.Alternative()
	if rt.Provider() != onnxruntime.ProviderCPU || other == nil || other.Provider() != onnxruntime.ProviderOpenVINO {
		t.Fatalf("provider %s, alternative %v", rt.Provider(), other)
	}
	if !slices.Contains(rt.Precisions(), onnxruntime.FP16) || rt.Alone(onnxruntime.BF16) || other.Alone(onnxruntime.FP16) {
		t.Errorf("precisions %v", rt.Precisions())
	}
	if !rt.Whole(onnxruntime.FP32) || !rt.Whole(onnxruntime.FP16) || rt.Whole(onnxruntime.BF16) || other.Whole(onnxruntime.FP32) || other.Whole(onnxruntime.BF16) {
		t.Error("only the CPU provider computes a network in one session with the rest of a step")
	}
	plan := restore.Plan{Task: operator.GaussianDeblur, Image: rgb(32, 32), Solver: natural(t, operator.GaussianDeblur, effectSigma)}
	e := newEngine(t, rt, restore.Config{Methods: method.Builtin(), Operators: operator.Builtin()})
	provider := func(precision onnxruntime.Precision) string {
		plan := plan
		plan.Precision = precision
		if b := e.Build(plan); b.Precision != precision {
			t.Errorf("the build of %s has %s", precision, b.Precision)
		}
		return e.RuntimeFor(plan).Provider()
	}
	if got := provider(onnxruntime.FP32); got != onnxruntime.ProviderCPU {
		t.Errorf("without a measurement: %s", got)
	}
	if n := len(e.Candidates(plan)); n != 2 {
		t.Errorf("%d candidates", n)
	}
	times, err := e.Race(t.Context(), plan)
	if err != nil || len(times) != 2 || times[onnxruntime.ProviderCPU] <= 0 || times[onnxruntime.ProviderOpenVINO] <= 0 {
		t.Fatalf("race: %v, %v", times, err)
	}
	e.Choose(plan, onnxruntime.ProviderOpenVINO)
	if got := provider(onnxruntime.FP32); got != onnxruntime.ProviderOpenVINO {
		t.Errorf("after the measurement: %s", got)
	}
	if got := provider(onnxruntime.FP16); got != onnxruntime.ProviderCPU {
		t.Errorf("float16: %s", got)
	}
	if rt.Computes(onnxruntime.BF16) {
		if got := provider(onnxruntime.BF16); got != onnxruntime.ProviderOpenVINO {
			t.Errorf("bfloat16: %s", got)
		}
	}
	large := plan
	large.Image.Width = 64
	if got := e.RuntimeFor(large).Provider(); got != onnxruntime.ProviderCPU {
		t.Errorf("another shape: %s", got)
	}
	e.Prefer(onnxruntime.ProviderCPU)
	if got := provider(onnxruntime.FP32); got != onnxruntime.ProviderCPU || len(e.Candidates(plan)) != 1 {
		t.Errorf("preferred cpu: %s, %d candidates", got, len(e.Candidates(plan)))
	}
}

// A plan with another step size is solved by the compiled solver of the plan before, one with another operator is not; both are found again.
func TestEngineReusesSolvers(t *testing.T) {
	t.Parallel()
	e := newEngine(t, onnxtest.Runtime(t), restore.Config{Methods: method.Builtin(), Operators: operator.Builtin()})
	solverOf := func(task string, steps int) *solver.Solver {
		t.Helper()
		cfg := resolve(t, method.Request{Method: "ddiff", Preset: "gradient", Task: task, Steps: steps})
		s, err := e.Solver(restore.Plan{Task: task, Image: rgb(32, 32), Solver: cfg}, 1)
		must(t, err)
		if s.Steps() != steps {
			t.Errorf("a solver of %d steps for %d", s.Steps(), steps)
		}
		return s
	}
	first, blur := solverOf(operator.InpaintBox, 20), solverOf(operator.GaussianDeblur, 20)
	if first == blur {
		t.Error("one solver for two operators")
	}
	if solverOf(operator.InpaintBox, 30) != first || solverOf(operator.InpaintBox, 20) != first {
		t.Error("other steps are compiled again")
	}
	if solverOf(operator.GaussianDeblur, 20) != blur {
		t.Error("the solver of the other operator is lost")
	}
}
