package prior_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/prior"
)

// A choice names the forms that the device cannot run and takes the fastest of the others. It is stored, until the file is damaged.
func TestChoose(t *testing.T) {
	rt := onnxtest.Runtime(t)
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	p, err := prior.Open(prior.Bundled)
	must(t, err)
	w := prior.Workload{Images: 2, Height: 16, Width: 16, Precision: onnxruntime.FP32}
	choose := func() prior.Choice {
		t.Helper()
		c, err := p.Choose(t.Context(), rt, w)
		must(t, err)
		return c
	}
	c := choose()
	if len(c.Tried) != len(prior.Rewritings()) {
		t.Errorf("tried %+v", c.Tried)
	}
	best := 0.0
	for _, trial := range c.Tried {
		switch trial.Form {
		case prior.Exported, prior.TimeTables:
			if trial.Left != "" || trial.Milliseconds <= 0 || !(trial.Difference < 1e-5) {
				t.Errorf("%+v", trial)
			}
			if trial.Form == c.Form {
				best = trial.Milliseconds
			}
		default:
			if !strings.Contains(trial.Left, "NhwcConv") || trial.Milliseconds != 0 {
				t.Errorf("%+v", trial)
			}
		}
	}
	for _, trial := range c.Tried {
		if best == 0 || trial.Left == "" && trial.Milliseconds < 0.9*best {
			t.Errorf("%s is chosen with %.3g ms, but %s takes %.3g ms", c.Form, best, trial.Form, trial.Milliseconds)
		}
	}
	files, err := filepath.Glob(filepath.Join(cache, "ddiff", "forms", "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("stored %v, %v", files, err)
	}
	must(t, os.WriteFile(files[0], []byte(`{"form": "tables+graph"}`), 0o600))
	if c := choose(); c.Form != prior.TimeTables.WithGraph() || len(c.Tried) != 0 {
		t.Errorf("the stored choice is not used: %+v", c)
	}
	w.Images = 3
	if c := choose(); c.Form != prior.TimeTables.WithGraph() {
		t.Errorf("three images: the choice for two is not used: %+v", c)
	}
	must(t, os.WriteFile(files[0], []byte(`{"form": "best"}`), 0o600))
	if c := choose(); len(c.Tried) != len(prior.Rewritings()) {
		t.Errorf("a damaged choice is used: %+v", c)
	}
	must(t, os.Remove(files[0]))
	must(t, syscall.Mkfifo(files[0], 0o600))
	if c := choose(); len(c.Tried) != len(prior.Rewritings()) {
		t.Errorf("a choice that is no file is used: %+v", c)
	}
	must(t, os.Remove(files[0]))
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	if c, err := p.Choose(t.Context(), rt, w); err == nil || len(c.Tried) != len(prior.Rewritings()) {
		t.Errorf("without a cache: %+v, %v", c, err)
	}
}

// Engines of several devices share a prior: their choices are one.
func TestChooseTogether(t *testing.T) {
	rt := onnxtest.Runtime(t)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	p, err := prior.Open(prior.Bundled)
	must(t, err)
	w := prior.Workload{Images: 1, Height: 16, Width: 16, Precision: onnxruntime.FP32}
	var chosen [3]prior.Choice
	var together sync.WaitGroup
	for i := range chosen {
		together.Go(func() {
			var err error
			if chosen[i], err = p.Choose(t.Context(), rt, w); err != nil {
				t.Error(err)
			}
			if _, err := p.InForm(rt, prior.TimeTables); err != nil {
				t.Error(err)
			}
		})
	}
	together.Wait()
	if chosen[0].Form != chosen[1].Form || chosen[0].Form != chosen[2].Form {
		t.Errorf("chosen %+v", chosen)
	}
}

// A form that predicts something else is left.
func TestTryLeavesOthers(t *testing.T) {
	t.Parallel()
	p, err := prior.Open(prior.Bundled)
	must(t, err)
	trial, err := p.TryAgainst(t.Context(), onnxtest.Runtime(t), 0.9)
	must(t, err)
	if !strings.Contains(trial.Left, "differ by 0.0") || trial.Milliseconds != 0 {
		t.Errorf("%+v", trial)
	}
}
