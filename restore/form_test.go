package restore_test

import (
	"os"
	"path/filepath"
	"testing"

	"ddiff/restore"
	"ddiff/restore/method"
	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/onnx/onnxtest"
	"ddiff/restore/operator"
	"ddiff/restore/prior"
	"ddiff/restore/solver"
)

// An engine takes the chosen form on the provider for which it is configured; a stated form is not measured, and steps that
// differentiate the network have it as exported.
func TestEngineForms(t *testing.T) {
	rt := onnxtest.Runtime(t)
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	plan := restore.Plan{Task: operator.GaussianDeblur, Image: rgb(16, 16), Solver: natural(t, operator.GaussianDeblur, effectSigma)}
	form := func(cfg restore.Config, plan restore.Plan) string {
		t.Helper()
		e := newEngine(t, rt, cfg)
		if got, want := e.Form(plan), cfg.Build.Form; got != want && plan.Solver.Method == "ddiff" {
			t.Errorf("before the first solver: %q, want %q", got, want)
		}
		_, err := e.Solver(plan, 1)
		must(t, err)
		return string(e.Form(plan))
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
	if got := form(chosen, plan); got != "" && got != string(prior.TimeTables) || len(files()) != 1 {
		t.Errorf("chosen %q, stored %v", got, files())
	}
	must(t, os.WriteFile(files()[0], []byte(`{"form": "tables"}`), 0o600))
	if got := form(chosen, plan); got != string(prior.TimeTables) {
		t.Errorf("the stored choice: %q", got)
	}
	chosen.Build = solver.Build{Form: prior.TimeTables.WithGraph()}
	if got := form(chosen, plan); got != "tables+graph" || len(files()) != 1 {
		t.Errorf("a stated form: %q, stored %v", got, files())
	}
	plan.Solver = resolve(t, method.Request{Method: "dps", Preset: "ffhq", Task: plan.Task, Steps: 5})
	if got := form(chosen, plan); got != "" || len(files()) != 1 {
		t.Errorf("a gradient: %q, stored %v", got, files())
	}
}
