package restore_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/prior"
	"ddiff/internal/restore/solver"
	"ddiff/restore"
	"ddiff/restore/method"
	"ddiff/restore/operator"
)

// An engine takes the chosen form of a batch size on the provider for which it is configured; a stated form is checked, once, and steps that differentiate the
// network have it as exported.
func TestEngineForms(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles each form of the network: make test-all")
	}
	rt := onnxtest.Runtime(t)
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	plan := restore.Plan{Task: operator.GaussianDeblur, Image: rgb(16, 16), Solver: natural(t, operator.GaussianDeblur, effectSigma)}
	form := func(cfg restore.Config, plan restore.Plan) string {
		t.Helper()
		e := newEngine(t, rt, cfg)
		if got, want := e.Form(plan, 1), cfg.Build.Form; got != want && plan.Solver.Method == "ddiff" {
			t.Errorf("before the first solver: %q, want %q", got, want)
		}
		_, err := e.Solver(t.Context(), plan, 1)
		must(t, err)
		return string(e.Form(plan, 1))
	}
	files := func() []string {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(cache, "ddiff", "forms", "*.json"))
		must(t, err)
		return files
	}
	if got := form(restore.Config{ChooseOn: onnxruntime.ProviderCUDA}, plan); got != "" || len(files()) != 0 {
		t.Errorf("another provider: %q, stored %v", got, files())
	}
	chosen := restore.Config{ChooseOn: onnxruntime.ProviderCPU}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newEngine(t, rt, chosen).Solver(ended, plan, 1); !errors.Is(err, context.Canceled) || len(files()) != 0 {
		t.Errorf("an interrupted choice: %v, stored %v", err, files())
	}
	if got := form(chosen, plan); got != "" && got != string(prior.TimeTables) || len(files()) != 1 {
		t.Errorf("chosen %q, stored %v", got, files())
	}
	must(t, os.WriteFile(files()[0], []byte(`{"form": "tables"}`), 0o600))
	if got := form(chosen, plan); got != string(prior.TimeTables) {
		t.Errorf("the stored choice: %q", got)
	}
	each := newEngine(t, rt, chosen)
	_, err := each.Solver(t.Context(), plan, 1)
	must(t, err)
	if one, two := each.Form(plan, 1), each.Form(plan, 2); one != prior.TimeTables || two != "" {
		t.Errorf("the form for one image: %q, for two, before a choice: %q", one, two)
	}
	chosen.Build = solver.Build{Form: prior.TimeTables.WithGraph()}
	for range 2 {
		if got := form(chosen, plan); got != "tables+graph" || len(files()) != 2 {
			t.Errorf("a stated form: %q, stored %v", got, files())
		}
	}
	e := newEngine(t, rt, restore.Config{Build: solver.Build{Form: prior.ChannelsLast}})
	if _, err := e.Solver(t.Context(), plan, 1); !errors.Is(err, prior.ErrForm) || !errors.Is(err, onnxruntime.ErrFallback) || !strings.Contains(err.Error(), "NhwcConv") || len(files()) != 2 {
		t.Errorf("a form that the device lacks: %v, stored %v", err, files())
	}
	plan.Solver = resolve(t, method.Request{Method: "dps", Preset: "ffhq", Task: plan.Task, Steps: 5})
	if got := form(chosen, plan); got != "" || len(files()) != 2 {
		t.Errorf("a gradient: %q, stored %v", got, files())
	}
}
