package gpuworker

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"ddiff/gpuworker/guard"
	"ddiff/gpuworker/tuner"
	"ddiff/gpuworker/workertest"
	"ddiff/internal/regular"
	"ddiff/manifest"
	"ddiff/restore"
	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/operator"
	"ddiff/restore/raster"
	"ddiff/restore/solver"
	"ddiff/storage"
)

func newTuner(t *testing.T, cfg tuner.Config) *tuner.Tuner {
	t.Helper()
	out, err := tuner.New(cfg)
	must(t, err)
	return out
}

// engineOf returns an engine with a score model that predicts a tenth of the image as noise, and calls of two steps.
func engineOf(t *testing.T) *restore.Engine {
	t.Helper()
	return engineWith(t, 0.1)
}

// engineWith returns an engine with a score model that predicts a multiple of the image as noise.
func engineWith(t *testing.T, scale float32) *restore.Engine {
	t.Helper()
	return workertest.Engine(t, workertest.Share(t, scale), solver.Build{Chunk: 2})
}

var sampleItem = workertest.Item

// planned returns a planned task of an item.
func planned(t *testing.T, in *assigned, it manifest.Item) *task {
	t.Helper()
	tk := &task{item: it, assigned: in, ctx: t.Context()}
	must(t, in.plan(tk))
	return tk
}

// An item that this worker cannot plan has the class of its error.
func TestPlanOfItem(t *testing.T) {
	t.Parallel()
	e := engineOf(t)
	good := sampleItem(t, e, 32, 32)
	in := newAssigned(Assignment{Engine: e}, 1, nil, 0)
	need := e.Memory(planned(t, in, good).plan, 1)
	for name, tt := range map[string]struct {
		change func(*manifest.Item)
		memory int64
		want   error
		text   string
	}{
		"prior":        {func(it *manifest.Item) { it.Prior = strings.Repeat("1", 64) }, 0, nil, "needs the prior"},
		"settings":     {func(it *manifest.Item) { it.Solver = []byte("{") }, 0, ErrInput, "solver settings"},
		"operator":     {func(it *manifest.Item) { it.Operator = &manifest.Source{SHA256: "x"} }, 0, ErrInput, "no operator file"},
		"precision":    {func(it *manifest.Item) { it.Precision = "fp7" }, 0, ErrUnsupported, "a"},
		"task":         {func(it *manifest.Item) { it.Task = "unknown" }, 0, ErrUnsupported, "item a"},
		"identity":     {func(it *manifest.Item) { it.Sigma = 0.5 }, 0, ErrUnsupported, ""},
		"memory":       {func(*manifest.Item) {}, need - 1, errMemory, "32×32"},
		"least memory": {func(*manifest.Item) {}, need, nil, ""},
		"no limit":     {func(*manifest.Item) {}, 0, nil, ""},
	} {
		it := good
		tt.change(&it)
		in := newAssigned(Assignment{Engine: e}, 1, nil, tt.memory)
		err := in.plan(&task{item: it})
		if (err == nil) != (tt.want == nil && tt.text == "") || tt.want != nil && !errors.Is(err, tt.want) || err != nil && !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if p, err := in.precision(&manifest.Item{Precision: "fp32"}); err != nil || p != onnxruntime.FP32 {
		t.Errorf("precision %q, %v", p, err)
	}
	if p, err := in.precision(&manifest.Item{}); err != nil || p != "" {
		t.Errorf("precision %q, %v", p, err)
	}
}

// The batch is the campaign's size, or a power of two from the tuner, within the memory.
func TestSizeOfBatch(t *testing.T) {
	t.Parallel()
	e := engineOf(t)
	it := sampleItem(t, e, 32, 32)
	plan := planned(t, newAssigned(Assignment{Engine: e}, 1, nil, 0), it).plan
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
			tasks[i] = &task{assigned: in, plan: plan}
		}
		if tt.best > 0 {
			for n, seconds := range []time.Duration{4, 2, 1, 1} {
				w.cfg.Tuner.Record(tasks[0].workload(), 1<<n, seconds)
			}
		}
		if got := (engineRestorer{w.core}).batchSize(tasks); got != tt.want {
			t.Errorf("%+v: %d", tt, got)
		}
	}
}

// The time of a step does not count the first chunk. The last chunk, which is shorter, may compile.
func TestProgressOfBatch(t *testing.T) {
	t.Parallel()
	e := engineOf(t)
	tk := planned(t, newAssigned(Assignment{Engine: e}, 1, nil, 0), sampleItem(t, e, 32, 32))
	s, err := e.Solver(tk.plan, 2)
	must(t, err)
	now, made := &clock{time.Unix(0, 0)}, 0
	w, _ := workerOf(t, func(c *Config) {
		c.Now, c.Steps = func() time.Time { return now.now }, func(n int) { made += n }
		c.Limits = guard.Limits{Solve: 10 * time.Second, Compile: time.Hour}
	})
	w.cfg.Tuner.Record(tk.workload(), 1, 2*time.Second)
	a := w.watchdog.Begin(t.Context(), stageCompile, time.Minute)
	defer a.End()
	p := engineRestorer{w.core}.newProgress(t.Context(), a, s, tk.workload(), 0)
	if stage, limit, interruptible := a.Stage(); limit != 160*time.Second || !interruptible || stage != stageSolve || p.stepPerImage() != 0 {
		t.Errorf("the first chunk: limit %v, %v per step", limit, p.stepPerImage())
	}
	for _, tt := range []struct {
		step     int
		took     time.Duration
		perImage time.Duration
		limit    time.Duration
	}{
		{2, 8 * time.Second, 2 * time.Second, 160 * time.Second},
		{4, 4 * time.Second, time.Second, 160*time.Second + time.Hour},
		{5, 4 * time.Second, 8 * time.Second / 6, 160*time.Second + time.Hour},
	} {
		now.pass(tt.took)
		p.update(tt.step)
		if _, limit, _ := a.Stage(); p.stepPerImage() != tt.perImage || limit != tt.limit || made != 2*tt.step {
			t.Errorf("step %d: %v per step and image, limit %v, %d steps made", tt.step, p.stepPerImage(), limit, made)
		}
	}
	if rt := RuntimeOf(e, tk.plan, "v"); rt.K != 2 || rt.Version != "v" || rt.Provider == "" {
		t.Errorf("%+v", rt)
	}
	for steps, want := range map[int]int{0: 2, 1: 1, 2: 2, 3: 2} {
		plan := tk.plan
		if plan.Solver.Steps = steps; RuntimeOf(e, plan, "").K != want {
			t.Errorf("%d steps: %d per call", steps, RuntimeOf(e, plan, "").K)
		}
	}
}

// A preflight compiles for one image and for a full batch, and solves the largest image.
func TestPreflightOfShapes(t *testing.T) {
	t.Parallel()
	e := engineOf(t)
	sizes := newTuner(t, tuner.Config{})
	sample := []manifest.Item{sampleItem(t, e, 16, 16), sampleItem(t, e, 32, 16), sampleItem(t, e, 16, 16)}
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
			t.Error("a draining worker solves a chunk")
		}
	}
	p := &preflight{assigned: newAssigned(Assignment{Engine: e}, 1, nil, 1), tuner: sizes, sample: sample}
	if _, err := p.gradient(t.Context()); !errors.Is(err, errMemory) {
		t.Errorf("too large: %v", err)
	}
	p.sample[1].Prior = strings.Repeat("1", 64)
	if _, err := p.prior(t.Context()); err == nil || !strings.Contains(err.Error(), "is for the prior") {
		t.Errorf("another prior: %v", err)
	}
}

// A probe solves a chunk of the good item, or of the failed one, unless there is nothing to solve.
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
		good   *manifest.Item
		solves bool
	}{
		"failed":    {&task{item: it, assigned: in}, nil, true},
		"good":      {&task{item: other, assigned: in}, &it, true},
		"unplanned": {&task{item: other, assigned: in}, nil, false},
		"no item":   {&task{assigned: in}, nil, false},
		"no engine": {&task{item: it, assigned: newAssigned(Assignment{}, 1, nil, 0)}, nil, false},
		"preflight": {&task{preflight: &manifest.Preflight{Items: []manifest.Item{it}}, assigned: in}, nil, true},
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
	failed := &task{item: it, assigned: newAssigned(Assignment{Engine: e}, 1, nil, 0)}
	if err := (engineRestorer{w.core}).probe(t.Context(), failed, nil); err != nil {
		t.Errorf("the failed item: %v", err)
	}
	if err := (engineRestorer{w.core}).probe(t.Context(), failed, &it); !errors.Is(err, solver.ErrDiverged) {
		t.Errorf("the good item: %v", err)
	}
}

// blobs are sources by path.
type blobs map[string][]byte

func (b blobs) Get(_ context.Context, path string) ([]byte, error) {
	if data, ok := b[path]; ok {
		return data, nil
	}
	return nil, storage.ErrNotFound
}

// The files of an item are read, verified, decoded and fitted; the measurement is simulated or read.
func TestLoadOfItem(t *testing.T) {
	t.Parallel()
	e := engineOf(t)
	encode := func(width, height int) []byte {
		data, err := raster.EncodePNG(raster.New(3, height, width))
		must(t, err)
		return data
	}
	array := func(shape ...int) []byte {
		n := 1
		for _, d := range shape {
			n *= d
		}
		values := make([]float32, n)
		values[0] = -1 // zeros alone may be black
		data, err := raster.EncodeNPY(shape, values)
		must(t, err)
		return data
	}
	from := blobs{"wide": encode(40, 16), "square": encode(16, 16), "text": []byte("text"), "y": array(3, 4, 4), "small": array(3, 4, 2)}
	src := func(path string) *manifest.Source {
		return &manifest.Source{Path: path, SHA256: regular.SHA256(from[path])}
	}
	for name, tt := range map[string]struct {
		image, measurement *manifest.Source
		width, height      int
		want               error
		text               string
	}{
		"image":                {src("square"), nil, 16, 16, nil, ""},
		"cropped image":        {src("wide"), nil, 16, 16, nil, ""},
		"another size":         {src("wide"), nil, 16, 24, ErrInput, "its size is"},
		"no image":             {src("text"), nil, 16, 16, raster.ErrFormat, "decode text"},
		"missing":              {src("none"), nil, 16, 16, storage.ErrNotFound, "read none"},
		"changed":              {&manifest.Source{Path: "square", SHA256: strings.Repeat("0", 64)}, nil, 16, 16, errDigest, "submit the campaign again"},
		"measurement":          {nil, src("y"), 16, 16, nil, ""},
		"measurement of other": {nil, src("small"), 16, 16, ErrInput, "the task needs"},
		"no measurement":       {nil, src("text"), 16, 16, nil, "read measurement"},
		"nothing":              {nil, nil, 16, 16, ErrInput, "neither an image nor a measurement"},
	} {
		in := newAssigned(Assignment{Engine: e, Sources: from}, 1, raster.NewBudget(1<<30), 0)
		tk := planned(t, in, sampleItem(t, e, tt.width, tt.height, func(it *manifest.Item) { it.Image, it.Measurement = tt.image, tt.measurement }))
		err := in.load(t.Context(), tk, nil)
		if (err == nil) != (tt.text == "") || tt.want != nil && !errors.Is(err, tt.want) || err != nil && !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && (len(tk.problem.Y) != 3*4*4 || (tk.truth != nil) != (tt.image != nil)) {
			t.Errorf("%s: %d values of y", name, len(tk.problem.Y))
		}
		// Stored arrays replace the files.
		tk = planned(t, in, sampleItem(t, e, 16, 16, func(it *manifest.Item) { it.Image = src("none") }))
		if err := in.load(t.Context(), tk, &Stored{Measurement: from["y"]}); err != nil || tk.truth != nil || len(tk.problem.Y) != 48 {
			t.Errorf("stored arrays: %v", err)
		}
		if err := in.load(t.Context(), tk, &Stored{Measurement: from["small"]}); !errors.Is(err, ErrInput) {
			t.Errorf("a stored array of another shape: %v", err)
		}
	}
}

// A mask or kernel of an item is read from its file, or from the stored arrays.
func TestLoadOfMask(t *testing.T) {
	t.Parallel()
	e := engineOf(t)
	one, err := raster.EncodeNPY([]int{16, 16}, append(make([]float32, 255), 1))
	must(t, err)
	y, err := raster.EncodeNPY([]int{3, 16, 16}, make([]float32, 3*256))
	must(t, err)
	from := blobs{"mask": one, "text": []byte("text")}
	in := newAssigned(Assignment{Engine: e, Sources: from}, 1, raster.NewBudget(1<<30), 0)
	for path, good := range map[string]bool{"mask": true, "text": false} {
		it := sampleItem(t, e, 16, 16, func(it *manifest.Item) {
			op, err := operator.Builtin().New(operator.InpaintRandom, nil, operator.Shape{Channels: 3, Height: 16, Width: 16})
			must(t, err)
			it.Task, it.Params, it.Image = operator.InpaintRandom, op.Params, nil
			it.Mask, it.Measurement = &manifest.Source{Path: path, SHA256: regular.SHA256(from[path])}, &manifest.Source{Path: "y", SHA256: regular.SHA256(y)}
		})
		tk := planned(t, in, it)
		if err := in.fetchDraw(t.Context(), tk); (err == nil) != good || good && (tk.problem.Draw[255] != 1 || tk.problem.Draw[0] != 0) {
			t.Errorf("%s: %v", path, err)
		}
		tk = planned(t, in, it)
		if err := in.load(t.Context(), tk, &Stored{Measurement: y, Draw: from[path]}); (err == nil) != good || good && tk.problem.Draw[255] != 1 {
			t.Errorf("stored %s: %v", path, err)
		}
	}
}

// A preflight solves a chunk of tasks whose items need a mask or a kernel from a file, without the file.
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
		p := &preflight{assigned: newAssigned(Assignment{Engine: e}, 1, nil, 0), tuner: newTuner(t, tuner.Config{}), sample: []manifest.Item{it}}
		if _, err := p.gradient(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(p.tasks) != 1 || p.tasks[0].op.Definition().IsGiven() != own {
			t.Fatalf("%s: %d tasks", task, len(p.tasks))
		}
		if _, err := p.memory(t.Context()); err != nil {
			t.Errorf("%s: %v", task, err)
		}
	}
}
