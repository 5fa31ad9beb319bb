package gpuworker

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/restore"
	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/onnx/onnxtest"
)

// TestChooseProvider: an engine with two providers is measured once for each shape. If a measurement fails, the engine's own provider is used, a
// warning has the reason, and the next worker measures again.
func TestChooseProvider(t *testing.T) {
	library := onnxtest.OpenVINOLibrary(t)
	rt, err := onnxtest.Runtime(t).With(onnxruntime.Config{Provider: onnxruntime.ProviderAuto, OpenVINO: library})
	must(t, err)
	defer rt.Close()
	e := restore.NewEngine(rt, engineOf(t).Prior(), restore.Config{})
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	var log bytes.Buffer
	w, _ := workerOf(t, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	tk := planned(t, newAssigned(Assignment{Engine: e}, 1, nil, 0), sampleItem(t, e, 16, 16))
	own := e.Candidates(tk.Plan)[0].Provider()
	key := raceWorkload(e, tk.Plan)
	choose := func(ctx context.Context) {
		tk.ctx = ctx
		engineRestorer{w.core}.choose([]*task{tk})
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	choose(ended)
	if got := e.RuntimeFor(tk.Plan).Provider(); got != own {
		t.Errorf("after a failed measurement: %s, want %s", got, own)
	}
	if _, known := w.cfg.Tuner.Fastest(key, own); known || !strings.Contains(log.String(), "could not measure providers") {
		t.Errorf("a failed measurement: stored %v, log %s", known, log.String())
	}
	choose(t.Context())
	provider, known := w.cfg.Tuner.Fastest(key, own)
	if got := e.RuntimeFor(tk.Plan).Provider(); !known || got != provider {
		t.Errorf("after a measurement: %s, want %s, known %v", got, provider, known)
	}
	// A stored choice needs no measurement, and is used.
	other := e.Candidates(tk.Plan)[1].Provider()
	w.cfg.Tuner.RecordRace(key, own, map[string]time.Duration{own: 2, other: 1})
	choose(ended)
	if got := e.RuntimeFor(tk.Plan).Provider(); got != other {
		t.Errorf("with a stored choice: %s, want %s", got, other)
	}
	// A result names the provider that computed it, also if a later batch chose another one before the result was written.
	tk.lease, tk.ctx = &queue.Lease{}, t.Context()
	draw := tk.Op.Draw(tk.Problem.Key)
	tk.Problem.Draw, err = tk.Op.Encode(draw)
	must(t, err)
	tk.Problem.Y, err = e.Apply(t.Context(), tk.Op, make([]float32, tk.Op.Image.Size()), tk.Problem.Draw)
	must(t, err)
	must(t, engineRestorer{w.core}.solveBatch(t.Context(), []*task{tk}))
	e.Choose(tk.Plan, own)
	if got := w.result(tk, manifest.OutcomeDone, "").Runtime.Provider; got != other {
		t.Errorf("the result is of %s, want %s", got, other)
	}
}
