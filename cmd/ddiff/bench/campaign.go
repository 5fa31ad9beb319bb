package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"ddiff/internal/cli/embedded"
	"ddiff/internal/regular"
	"ddiff/internal/restore/job"
	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/prior"
	"ddiff/internal/restore/raster"
	"ddiff/internal/restore/solver"
	"ddiff/manifest"
	"ddiff/restore"
	"ddiff/restore/item"
	"ddiff/restore/method"
	"ddiff/restore/operator"
)

// preset has the step of PyTorch's solver.
const preset = "gradient"

// writePhotographs writes o.items distinct photographs to a new directory. It cycles through the given photographs and
// changes two values of each copy.
func (o benchOptions) writePhotographs(dir string) error {
	entries, err := filepath.Glob(filepath.Join(o.images, "*.png"))
	if err != nil || len(entries) == 0 {
		return fmt.Errorf("%s contains no PNG; name a directory of photographs", o.images)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	for i := range o.items {
		data, err := regular.Read(entries[i%len(entries)], raster.MaxBytes)
		if err != nil {
			return err
		}
		img, err := raster.Decode(data)
		if err != nil {
			return fmt.Errorf("%s: %w", entries[i%len(entries)], err)
		}
		copy(img.Pix, []float32{float32(i%256)/127.5 - 1, float32(i/256%256)/127.5 - 1}) // distinct images have distinct identities
		if data, err = raster.EncodePNG(img); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%03d.png", i)), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// spec returns a campaign of some tasks with batches of n over the photographs in dir. The seed is part of the identity of its items.
func (o benchOptions) spec(tasks []string, n int, dir string, seed int) *manifest.Spec {
	spec := manifest.Default()
	spec.Name, spec.Output, spec.Batch, spec.Steps, spec.Seed = "bench", filepath.Join(dir, "out"), n, o.steps, uint64(seed)
	spec.Preset = preset
	spec.Dataset = manifest.Dataset{Path: filepath.Join(dir, photographs), Size: o.size, Fit: item.FitResize}
	for _, task := range tasks {
		spec.Tasks = append(spec.Tasks, item.Task{Name: task})
	}
	spec.Precision = o.run.Spec.Precision
	return spec
}

// plan returns the plan of a task. Campaigns use the solver that is compiled for it.
func (o benchOptions) plan(m embedded.Machine, task string, precision onnxruntime.Precision) (restore.Plan, error) {
	sigma := 0.05
	settings, err := method.Builtin().Resolve(method.Request{
		Method: "ddiff", Preset: preset, Task: task, Sigma: &sigma, Steps: o.steps,
	}, m.Prior.Schedule.Steps())
	if err != nil {
		return restore.Plan{}, err
	}
	params, err := operator.Builtin().Parameters(task, nil)
	return restore.Plan{
		Task: task, Params: params, Solver: settings, Precision: precision,
		Image: operator.Shape{Channels: m.Prior.Card.Channels, Height: o.size, Width: o.size},
	}, err
}

// timeCampaign runs a campaign whose models are compiled before, as in a long one. It times the network alone before and after it,
// because the machine's speed drifts. alone: it then times the solver alone.
func (o benchOptions) timeCampaign(ctx context.Context, m embedded.Machine, spec *manifest.Spec, alone bool) (t timing, err error) {
	task, n := spec.Tasks[0].Name, spec.Batch
	t.precision = spec.Precision
	plan, err := o.plan(m, task, t.precision)
	if err != nil {
		return t, err
	}
	err = m.WithCampaign(ctx, spec, func(e embedded.Campaign) error {
		warm := job.Batch{Engine: m.Engine, Jobs: slices.Repeat([]*job.Job{{Plan: plan}}, n)}
		if err := warm.Compile(ctx); err != nil {
			return err
		}
		before, _, err := o.timeNetwork(ctx, m, plan, n)
		if err != nil {
			return err
		}
		var begin time.Time // of the work, once the dataset is read
		c, w, err := e.Parts(func(int, int, bool) { begin = time.Now() })
		if err != nil {
			return err
		}
		if err := e.Process(ctx, c, w); err != nil {
			return err
		}
		t.campaign = time.Since(begin).Seconds() * 1000 / float64(o.steps*o.items/n)
		if got := c.Counts(); got.Done != o.items {
			return fmt.Errorf("%d of %d items done", got.Done, o.items)
		}
		after, provider, err := o.timeNetwork(ctx, m, plan, n)
		t.network, t.provider = (before+after)/2, provider
		if err != nil || !alone {
			return err
		}
		if t.solver, err = o.timeSolver(ctx, m, plan, n); err != nil || plan.Precision == onnxruntime.FP32 {
			t.float32 = t.solver
			return err
		}
		plan.Precision = onnxruntime.FP32
		t.float32, err = o.timeSolver(ctx, m, plan, n)
		return err
	})
	return t, err
}

// timeNetwork returns the milliseconds of an evaluation of the bare score network for batches of n, on the runtime, which it also
// returns, and in the streams of a campaign's solver.
func (o benchOptions) timeNetwork(ctx context.Context, m embedded.Machine, plan restore.Plan, n int) (ms float64, provider string, err error) {
	rt := m.Engine.RuntimeFor(plan)
	streams := m.Prior.Streams(rt, n, m.Engine.Build(plan).Streams, o.size, o.size)
	p, err := m.Prior.InForm(rt, m.Engine.Form(plan, n))
	if err != nil {
		return 0, "", err
	}
	network, err := p.CompileStreams(rt, streams, o.size, o.size, plan.Precision)
	if err != nil {
		return 0, "", err
	}
	defer network.Close()
	for _, part := range network {
		part.T.I64[0] = 300
		if rt.GPU() { // whose copies steps do not make
			if err := part.StayOnDevice(); err != nil {
				return 0, "", err
			}
		}
	}
	run := func() error { return network.Run(ctx) }
	if err := errors.Join(run(), run()); err != nil { // the first calls of a session are slower
		return 0, "", err
	}
	ms, err = prior.Milliseconds(o.steps/3, 0, run)
	return ms, rt.Provider(), err
}

// printForms prints the trials of the network's forms for each batch size, where they are asked for or used.
func (o benchOptions) printForms(ctx context.Context, m embedded.Machine, r results, stdout io.Writer) error {
	s := r.settings[0]
	plan, err := o.plan(m, s.task, r.rounds[0][s].precision)
	if err != nil {
		return err
	}
	rt := m.Engine.RuntimeFor(plan)
	if rt.Divides() || !o.forms && rt.Provider() != onnxruntime.ProviderCUDA {
		return nil
	}
	fmt.Fprintf(stdout, "%-18s %5s %12s %12s  %s\n", "form", "batch", "network ms", "difference", "")
	for _, n := range o.batches {
		c, err := m.Prior.Choose(ctx, rt, prior.Workload{Images: n, Height: o.size, Width: o.size, Precision: plan.Precision})
		if err != nil {
			return err
		}
		for _, t := range c.Tried {
			note := t.Left
			if t.Form == c.Form {
				note = "chosen"
			}
			fmt.Fprintf(stdout, "%-18s %5d %12.2f %12.2g  %s\n", t.Form, n, t.Milliseconds, t.Difference, note)
		}
	}
	return nil
}

// timeSolver returns the milliseconds of a step of the solver alone, for a batch of n without a queue, storage, scores and pictures. It is
// the median over the calls of a run but the first, unless that one makes all steps; ddiff_torch.bench measures PyTorch in this way.
func (o benchOptions) timeSolver(ctx context.Context, m embedded.Machine, plan restore.Plan, n int) (float64, error) {
	op, err := m.Engine.Operator(plan)
	if err != nil {
		return 0, err
	}
	batch := job.Batch{Engine: m.Engine}
	for i := range n {
		key := noise.Key{uint32(i)}
		p := solver.Problem{Y: make([]float32, op.MeasurementSize()), Key: key}
		noise.Normal(p.Y, key, noise.Operator, 0, 0.5)
		if p.Draw, err = op.Encode(op.Draw(key)); err != nil {
			return 0, err
		}
		batch.Jobs = append(batch.Jobs, &job.Job{Plan: plan, Problem: p})
	}
	var sample []float64 // of calls
	last, made := time.Now(), 0
	batch.Begin = func(job.Course) { last = time.Now() }
	batch.Step = func(step int) error {
		now := time.Now()
		sample = append(sample, now.Sub(last).Seconds()*1000/float64(step-made))
		last, made = now, step
		return nil
	}
	if err := batch.Solve(ctx); err != nil {
		return 0, err
	}
	return spreadOf(sample[min(1, len(sample)-1):]).median, nil
}
