package gpuworker

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"ddiff/internal/gpuworker/guard"
	"ddiff/internal/gpuworker/tuner"
	"ddiff/internal/gpuworker/workertest"
	"ddiff/internal/record"
	"ddiff/internal/restore/job"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/prior"
	"ddiff/internal/restore/solver"
	"ddiff/restore"
	"ddiff/restore/item"
	"ddiff/restore/method"
	"ddiff/restore/operator"
)

// engineOf returns an engine with a score model that predicts a tenth of the image as noise.
func engineOf(t *testing.T) *restore.Engine {
	t.Helper()
	return engineWith(t, 0.1)
}

// engineWith returns an engine with a score model that predicts a multiple of the image as noise.
func engineWith(t *testing.T, scale float32) *restore.Engine {
	t.Helper()
	return workertest.Engine(t, workertest.Share(t, scale), solver.Build{})
}

var sampleItem = workertest.Item

// planned returns a planned task of an item.
func planned(t *testing.T, in *assigned, it item.Item) *task {
	t.Helper()
	tk := &task{Job: job.Job{Item: it}, assigned: in, ctx: t.Context()}
	must(t, in.loader.Plan(&tk.Job))
	return tk
}

// The batch is the campaign's size, or a power of two from the tuner, within the memory.
func TestSizeOfBatch(t *testing.T) {
	t.Parallel()
	e := engineOf(t)
	it := sampleItem(t, e, 32, 32)
	plan := planned(t, newAssigned(Assignment{Engine: e}, 1, nil, 0), it).Plan
	for _, tt := range []struct {
		items, campaign, best int
		memory                int64
		want                  int
	}{
		{7, 0, 0, 0, 1}, {7, 0, 4, 0, 4}, {3, 0, 4, 0, 2}, {1, 0, 4, 0, 1}, {7, 3, 4, 0, 3}, {2, 3, 4, 0, 2},
		{7, 6, 0, e.Memory(plan, 3), 3}, {7, 6, 0, e.Memory(plan, 3) - 1, 1}, {7, 4, 0, 1, 1}, {7, 0, 4, e.Memory(plan, 2), 2},
	} {
		w, _ := workerOf(t)
		in := newAssigned(Assignment{Engine: e, Batch: tt.campaign}, 1, nil, tt.memory)
		tasks := make([]*task, tt.items)
		for i := range tasks {
			tasks[i] = &task{assigned: in, Job: job.Job{Plan: plan}}
		}
		if tt.best > 0 {
			for n, seconds := range []time.Duration{4, 2, 1, 1} {
				w.cfg.Tuner.Record(tasks[0].workload(), 1<<n, seconds)
			}
		}
		if got := (engineRestorer{w.core}).size(tasks); got != tt.want {
			t.Errorf("%+v: %d", tt, got)
		}
	}
}

// progressOf returns the progress of a batch of n tasks that was just compiled.
func progressOf(t *testing.T, w *Worker, tk *task, n int) *progress {
	t.Helper()
	a := w.watchdog.Begin(t.Context(), stageCompile, time.Minute)
	t.Cleanup(a.End)
	return &progress{engineRestorer: engineRestorer{w.core}, drain: t.Context(), compiled: func() bool { return true }, activity: a, tasks: slices.Repeat([]*task{tk}, n)}
}

// The time of a step does not count the first one.
func TestProgressOfBatch(t *testing.T) {
	t.Parallel()
	e := engineOf(t)
	tk := planned(t, newAssigned(Assignment{Engine: e}, 1, nil, 0), sampleItem(t, e, 32, 32))
	now, made := &stoppedClock{time.Unix(0, 0)}, 0
	w, _ := workerOf(t, func(c *Config) {
		c.Now, c.Steps = func() time.Time { return now.time }, func(n int) { made += n }
		c.Limits = guard.Limits{Solve: 10 * time.Second, Compile: time.Hour}
	})
	w.cfg.Tuner.Record(tk.workload(), 1, 2*time.Second)
	const steps = 5
	four := progressOf(t, w, tk, 2)
	four.begin(job.Course{Steps: steps, Tiles: 1, Cost: method.Cost{Network: 4 * steps}, Curves: make([]solver.Curves, 2)})
	if limit := four.limit(); limit != 1600*time.Second {
		t.Errorf("the first step with four evaluations in a step: limit %v", limit)
	}
	p := progressOf(t, w, tk, 2)
	p.begin(job.Course{Steps: steps, Tiles: 1, Cost: method.Cost{Network: steps}, Curves: make([]solver.Curves, 2)})
	if limit := p.limit(); limit != 400*time.Second || p.stepPerImage() != 0 {
		t.Errorf("the first step: limit %v, %v per step", limit, p.stepPerImage())
	}
	for _, tt := range []struct {
		step     int
		took     time.Duration
		perImage time.Duration
		limit    time.Duration
	}{
		{1, 8 * time.Second, 4 * time.Second, 800 * time.Second},
		{2, 4 * time.Second, 2 * time.Second, 800 * time.Second},
		{3, 2 * time.Second, 3 * time.Second / 2, 800 * time.Second},
	} {
		now.time = now.time.Add(tt.took)
		must(t, p.update(tt.step))
		if limit := p.limit(); p.stepPerImage() != tt.perImage || limit != tt.limit || made != 2*tt.step {
			t.Errorf("step %d: %v per step and image, limit %v, %d steps made", tt.step, p.stepPerImage(), limit, made)
		}
	}
	if rt := job.RuntimeOf(e, tk.Plan, 2, "v"); rt.Version != "v" || rt.Provider == "" {
		t.Errorf("%+v", rt)
	}
}

// The form of the network is chosen for each batch size. A worker that drains makes no choice.
func TestChoicesOfWorker(t *testing.T) {
	rt := onnxtest.Runtime(t) // searches the cache
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	p, err := prior.Load("tiny.onnx", workertest.Share(t, 0.1))
	must(t, err)
	var log bytes.Buffer
	e, err := restore.OpenEngine(t.Context(), rt, p, restore.Config{ChooseOn: onnxruntime.ProviderCPU}, slog.New(slog.NewTextHandler(&log, nil)))
	must(t, err)
	defer func() { must(t, e.Close()) }()
	f := &preflight{assigned: newAssigned(Assignment{Engine: e, Batch: 2}, 1, nil, 0), tuner: tuner.New(slog.New(slog.DiscardHandler)), sample: []item.Item{sampleItem(t, e, 16, 16)}}
	_, err = f.prior(t.Context())
	must(t, err)
	_, err = f.gradient(t.Context())
	must(t, err)
	w, _ := workerOf(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (engineRestorer{w.core}).solve(ended, f.tasks); outcomeOf(ended, f.tasks[0], err).why != drain || log.Len() > 0 {
		t.Errorf("a worker that drains: %v, log %s", err, log.String())
	}
	_, err = f.shapes(t.Context())
	must(t, err)
	if got := log.String(); !strings.Contains(got, "form=exported batch=2 ") || !strings.Contains(got, "form=exported batch=1 ") {
		t.Errorf("log %s", got)
	}
}

// A preflight compiles for one image and for a full batch, and solves the largest image.
func TestPreflightOfShapes(t *testing.T) {
	t.Parallel()
	e := engineOf(t)
	sizes := tuner.New(slog.New(slog.DiscardHandler))
	sample := []item.Item{sampleItem(t, e, 16, 16), sampleItem(t, e, 32, 16), sampleItem(t, e, 16, 16)}
	for batch, want := range map[int]string{0: "3 models compiled", 1: "3 models compiled", 2: "6 models compiled"} {
		p := &preflight{assigned: newAssigned(Assignment{Engine: e, Batch: batch}, 1, nil, 0), tuner: sizes, sample: sample}
		if found, err := p.prior(t.Context()); err != nil || !strings.HasPrefix(found, "tiny, 3 channels") {
			t.Errorf("%q, %v", found, err)
		}
		if found, err := p.gradient(t.Context()); err != nil || !strings.HasPrefix(found, "2 operators") || len(p.tasks) != 3 {
			t.Errorf("%q, %v", found, err)
		}
		if found, err := p.shapes(t.Context()); err != nil || found != want {
			t.Errorf("a batch of %d: %q, %v", batch, found, err)
		}
		if found, err := p.memory(t.Context()); err != nil || !strings.Contains(found, "at 32×16, peak") {
			t.Errorf("%q, %v", found, err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := p.shapes(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("a draining worker: %v", err)
		}
		if _, err := p.memory(ended); err == nil {
			t.Error("a draining worker makes a step")
		}
	}
	p := &preflight{assigned: newAssigned(Assignment{Engine: e}, 1, nil, 1), tuner: sizes, sample: sample}
	if _, err := p.gradient(t.Context()); !errors.Is(err, job.ErrMemory) {
		t.Errorf("too large: %v", err)
	}
	p.sample[1].Prior = strings.Repeat("1", 64)
	if _, err := p.prior(t.Context()); err == nil || !strings.Contains(err.Error(), "is for the prior") {
		t.Errorf("another prior: %v", err)
	}
}

// A probe makes a step of the good item, or of the failed one, unless there is nothing to solve.
func TestProbeOfDevice(t *testing.T) {
	t.Parallel()
	e := engineOf(t)
	w, _ := workerOf(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	it := sampleItem(t, e, 16, 16)
	other := it
	other.Prior = strings.Repeat("1", 64)
	in := newAssigned(Assignment{Engine: e}, 1, nil, 0)
	for name, tt := range map[string]struct {
		failed *task
		good   *item.Item
		solves bool
	}{
		"failed":    {&task{Job: job.Job{Item: it}, assigned: in}, nil, true},
		"good":      {&task{Job: job.Job{Item: other}, assigned: in}, &it, true},
		"unplanned": {&task{Job: job.Job{Item: other}, assigned: in}, nil, false},
		"no item":   {&task{assigned: in}, nil, false},
		"no engine": {&task{Job: job.Job{Item: it}, assigned: newAssigned(Assignment{}, 1, nil, 0)}, nil, false},
		"preflight": {&task{preflight: &record.Preflight{Items: []item.Item{it}}, assigned: in}, nil, true},
	} {
		r := engineRestorer{w.core}
		if err := r.probe(t.Context(), tt.failed, tt.good); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := r.probe(ended, tt.failed, tt.good); (err != nil) != tt.solves {
			t.Errorf("%s: a probe of an ended context returns %v", name, err)
		}
	}
}

// TestProbeThatDiverges: the good item has been solved before, so that a divergence is the device's. That of another item may be its own.
func TestProbeThatDiverges(t *testing.T) {
	t.Parallel()
	e := engineWith(t, float32(math.NaN()))
	w, _ := workerOf(t)
	it := sampleItem(t, e, 16, 16)
	failed := &task{Job: job.Job{Item: it}, assigned: newAssigned(Assignment{Engine: e}, 1, nil, 0)}
	if err := (engineRestorer{w.core}).probe(t.Context(), failed, nil); err != nil {
		t.Errorf("the failed item: %v", err)
	}
	if err := (engineRestorer{w.core}).probe(t.Context(), failed, &it); !errors.Is(err, solver.ErrDiverged) {
		t.Errorf("the good item: %v", err)
	}
}

// A preflight makes a step of tasks whose items need a mask or a kernel from a file, without the file.
func TestPreflightWithoutFiles(t *testing.T) {
	t.Parallel()
	e := engineOf(t)
	for task, own := range map[string]bool{operator.Inpaint: false, operator.GaussianDeblur: true} {
		it := sampleItem(t, e, 16, 16)
		d, err := operator.Builtin().Definition(task, own)
		must(t, err)
		it.Task, it.OwnKernel = task, own
		if it.Params, err = d.Parameters.Complete(nil); err != nil {
			t.Fatal(err)
		}
		must(t, it.Identify())
		p := &preflight{assigned: newAssigned(Assignment{Engine: e}, 1, nil, 0), tuner: tuner.New(slog.New(slog.DiscardHandler)), sample: []item.Item{it}}
		if _, err := p.gradient(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(p.tasks) != 1 || p.tasks[0].Op.IsGiven() != own {
			t.Fatalf("%s: %d tasks", task, len(p.tasks))
		}
		if _, err := p.memory(t.Context()); err != nil {
			t.Errorf("%s: %v", task, err)
		}
	}
}
