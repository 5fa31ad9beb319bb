package gpuworker

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"ddiff/manifest"
	"ddiff/restore/onnx"
	"ddiff/restore/solver"
	"ddiff/telemetry"
)

// restore solves a group of items in batches of the right size and sends the batches to out.
func (w *Worker) restore(ctx context.Context, b batch, out chan<- batch) error {
	if b.tasks[0].preflight != nil {
		return w.preflight(ctx, b)
	}
	for rest := b.tasks; len(rest) > 0; {
		n := w.cut(rest)
		if err := w.attempt(ctx, batch{rest[:n]}, out); err != nil {
			return errors.Join(err, w.release(ctx, batch{rest[n:]}))
		}
		rest = rest[n:]
	}
	return nil
}

// cut returns the number of tasks of the next batch. Unless the campaign sets the batch, it is a power of two: the end of a
// campaign then needs no model that the search for the best size has not compiled.
func (w *Worker) cut(tasks []*task) int {
	on := tasks[0].on
	if w.cfg.Simulate != nil {
		return len(tasks)
	}
	n := min(len(tasks), w.cfg.Tuner.Size(on.Campaign, tasks[0].workload(), on.Batch))
	if on.Batch == 0 {
		n = 1 << (bits.Len(uint(n)) - 1)
	}
	return n
}

// attempt solves a batch and sends it to out. It splits a failed batch, into halves if memory ran out and into single items
// otherwise, so that one bad item fails alone. It settles a single item that fails.
func (w *Worker) attempt(ctx context.Context, b batch, out chan<- batch) error {
	if ctx.Err() != nil {
		return w.release(ctx, b)
	}
	first, n := b.tasks[0], len(b.tasks)
	err := errCancelled
	if !first.on.cancelled() {
		err = w.solve(ctx, b)
	}
	if err == nil {
		out <- b
		return nil
	}
	// A retry on this device fails again. Another worker may have another device.
	if errors.Is(err, onnx.ErrDeviceLost) || errors.Is(err, onnx.ErrFallback) {
		return errors.Join(fmt.Errorf("solve: %w", err), w.release(ctx, b))
	}
	o := outcomeOf(ctx, first, err)
	if n > 1 && o.kind != released && o.kind != cancelled {
		size := 1
		if outOfMemory(err) {
			w.cfg.Tuner.Exceeded(first.workload(), n)
			size = n / 2
		}
		for rest := b.tasks; len(rest) > 0; {
			part := min(size, len(rest))
			if err := w.attempt(ctx, batch{rest[:part]}, out); err != nil {
				return errors.Join(err, w.release(ctx, batch{rest[part:]}))
			}
			rest = rest[part:]
		}
		return nil
	}
	var errs error
	for _, t := range b.tasks {
		errs = errors.Join(errs, w.settle(ctx, t, o, manifest.Result{}))
	}
	return errs
}

// outOfMemory reports whether a smaller batch may succeed.
func outOfMemory(err error) bool { return errors.Is(err, onnx.ErrMemory) }

// solve restores a batch chunk by chunk and applies A to the restored images.
func (w *Worker) solve(drain context.Context, b batch) error {
	if w.cfg.Simulate != nil {
		return w.simulate(drain, b)
	}
	n, on, plan := len(b.tasks), b.tasks[0].on, b.tasks[0].plan
	s, err := w.compiled(b)
	if err != nil {
		return err
	}
	w.cfg.Instruments.BatchFill.Record(drain, fill(n, on.Batch))
	problems, states, curves := make([]solver.Problem, n), make([]solver.State, n), make([]solver.Curves, n)
	for i, t := range b.tasks {
		problems[i], states[i] = t.problem, s.Start(t.problem.Key)
		if t.resumed != nil {
			states[i], curves[i] = t.resumed.copy()
		}
	}
	begin := w.cfg.Now()
	ctx, end := w.cfg.Instruments.Stage(trace.ContextWithSpan(drain, trace.SpanFromContext(b.tasks[0].ctx)), w.cfg.Tracer, telemetry.StageRestore,
		attribute.String("ddiff.task", plan.Task), attribute.Int("ddiff.batch", n), attribute.Int("ddiff.steps", s.Steps()))
	for _, t := range b.tasks[1:] {
		trace.SpanFromContext(ctx).AddLink(trace.LinkFromContext(t.ctx))
	}
	ctx, stop := on.until(ctx)
	p := w.progress(ctx, n, states[0].Step)
	err = s.Resume(ctx, problems, states, curves, p.report)
	p.end()
	stop()
	end(err)
	if err != nil {
		if drain.Err() != nil && !on.cancelled() {
			w.storeCheckpoints(drain, b, states, curves)
		}
		return err
	}
	w.cfg.Tuner.Measured(b.tasks[0].workload(), n, p.perImage())
	seconds := w.cfg.Now().Sub(begin).Seconds() / float64(n)
	for i, t := range b.tasks {
		t.solution, t.seconds, t.batch = solver.Solution{X: states[i].Image(), Curves: curves[i]}, seconds, n
		if t.applied, err = on.Engine.Apply(t.ctx, t.op, states[i].Image(), t.problem.Draw); err != nil {
			return err
		}
	}
	return nil
}

// compiled returns the solver of a batch.
func (w *Worker) compiled(b batch) (*solver.Solver, error) {
	defer w.leases.begin(w.cfg.StageLimit)()
	return b.tasks[0].on.Engine.Solver(b.tasks[0].plan, len(b.tasks))
}

// fill is the share of the intended batch that is in use.
func fill(n, batch int) float64 {
	if batch == 0 {
		return 1
	}
	return float64(n) / float64(batch)
}

// progress records the chunks of one batch as spans and metrics, and extends the leases.
type progress struct {
	w     *Worker
	ctx   context.Context
	n     int // images
	at    int // steps made
	since time.Time
	end   func() // of the current chunk

	chunks         int
	longest, spent time.Duration
	steps          int // in spent
}

func (w *Worker) progress(ctx context.Context, n, at int) *progress {
	return &progress{w: w, ctx: ctx, n: n, at: at, since: w.cfg.Now(), end: w.leases.begin(w.cfg.StageLimit)}
}

// report records a chunk. step is the number of steps since the item's start.
func (p *progress) report(step int) error {
	w := p.w
	p.end()
	now, steps := w.cfg.Now(), step-p.at
	took := now.Sub(p.since)
	_, span := w.cfg.Tracer.Start(p.ctx, "steps", trace.WithTimestamp(p.since),
		trace.WithAttributes(attribute.Int("ddiff.step.first", p.at+1), attribute.Int("ddiff.step.last", step)))
	span.End(trace.WithTimestamp(now))
	w.cfg.Instruments.Steps.Add(p.ctx, int64(steps*p.n))
	w.cfg.Instruments.StepDuration.Record(p.ctx, took.Seconds()/float64(steps))
	w.cfg.Steps(steps * p.n)
	w.leases.beat(p.ctx)
	if p.chunks == 1 { // the first chunk of a batch is slower
		p.spent, p.steps = 0, 0
	}
	p.spent, p.steps = p.spent+took, p.steps+steps
	p.chunks++
	p.longest = max(p.longest, took)
	p.at, p.since = step, w.cfg.Now()
	p.end = w.leases.begin(max(4*p.longest, w.cfg.AckWait))
	return nil
}

// perImage returns the time per step and image, without the first chunk unless there is only one. It is zero without
// steps.
func (p *progress) perImage() time.Duration {
	if p.steps == 0 {
		return 0
	}
	return p.spent / time.Duration(p.steps*p.n)
}
