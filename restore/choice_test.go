package restore_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/prior"
	"ddiff/internal/restore/solver"
	"ddiff/restore"
	"ddiff/restore/method"
	"ddiff/restore/onnx"
	"ddiff/restore/operator"
)

// Beside the CPU provider, OpenVINO computes what it can, unless a replay prefers the CPU provider, or OpenVINO cannot run the network.
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
	if got := provider(onnxruntime.FP32); got != onnxruntime.ProviderOpenVINO {
		t.Errorf("float32: %s", got)
	}
	if got := provider(onnxruntime.FP16); got != onnxruntime.ProviderCPU {
		t.Errorf("float16: %s", got)
	}
	if rt.Computes(onnxruntime.BF16) {
		if got := provider(onnxruntime.BF16); got != onnxruntime.ProviderOpenVINO {
			t.Errorf("bfloat16: %s", got)
		}
	}
	e.Prefer(onnxruntime.ProviderCPU)
	if got := provider(onnxruntime.FP32); got != onnxruntime.ProviderCPU {
		t.Errorf("preferred cpu: %s", got)
	}

	g := onnx.NewGraph(onnx.DefaultOpset) // x - det(x) + det(x): OpenVINO has no determinants
	x := g.Input("x", onnx.Float, 1, 3, 32, 32)
	g.Input("t", onnx.Int64, 1)
	det := g.Reshape(g.Apply("Det", onnx.Float, []int{1, 3}, nil, x), 1, 3, 1, 1)
	g.Output("eps", g.Add(g.Minus(x, det), det))
	data, err := g.Marshal("network")
	must(t, err)
	p, err := prior.Load("determinant.onnx", onnxtest.WithMetadata(t, data, map[string]string{
		"ddiff.card": "1", "ddiff.name": "determinant", "ddiff.prediction": "epsilon", "ddiff.schedule": "linear:1e-4:0.02:1000", "ddiff.range": "-1..1",
		"ddiff.channels": "3", "ddiff.multiple_of": "8", "ddiff.learned_variance": "false", "ddiff.license": "CC0-1.0",
	}))
	must(t, err)
	var log bytes.Buffer
	e, err = restore.OpenEngine(t.Context(), rt, p, restore.Config{}, slog.New(slog.NewTextHandler(&log, nil)))
	must(t, err)
	defer func() { must(t, e.Close()) }()
	if got := e.RuntimeFor(restore.Plan{}).Provider(); got != onnxruntime.ProviderCPU || !strings.Contains(log.String(), "because OpenVINO cannot") {
		t.Errorf("determinants: %s, log %s", got, log.String())
	}
}

// A plan with another step size is solved by the compiled solver of the plan before, one with another operator is not; both are found again.
func TestEngineReusesSolvers(t *testing.T) {
	t.Parallel()
	e := newEngine(t, onnxtest.Runtime(t), restore.Config{Methods: method.Builtin(), Operators: operator.Builtin()})
	solverOf := func(task string, steps int) *solver.Solver {
		t.Helper()
		cfg := resolve(t, method.Request{Method: "ddiff", Preset: "gradient", Task: task, Steps: steps})
		s, err := e.Solver(t.Context(), restore.Plan{Task: task, Image: rgb(32, 32), Solver: cfg}, 1)
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
