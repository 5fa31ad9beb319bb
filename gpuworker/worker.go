package gpuworker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/errgroup"

	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/restore/solver"
	"ddiff/telemetry"
)

// Worker restores items until it is drained. Make it with New.
type Worker struct {
	stages
	cfg    Config
	leases held
}

// New checks the configuration.
func New(cfg Config) (*Worker, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure worker: %w", err)
	}
	cfg = cfg.withDefaults()
	return &Worker{stages: stages{cfg.Engine, cfg.Sources}, cfg: cfg, leases: held{
		leases: map[*queue.Lease]bool{}, every: cfg.AckWait / 3, now: cfg.Now,
	}}, nil
}

// batch is a group of items that are solved together.
type batch struct{ tasks []*task }

// Run works until ctx ends, which drains the worker, or the queue fails. After a drain every
// lease is settled or given back, and Run returns nil.
func (w *Worker) Run(ctx context.Context) error {
	// If a stage fails the others drain too.
	group, ctx := errgroup.WithContext(ctx)
	prepared := make(chan batch)
	restored := make(chan batch)
	group.Go(func() error {
		defer close(prepared)
		return w.prepare(ctx, prepared)
	})
	group.Go(func() error {
		defer close(restored)
		for b := range prepared {
			if err := w.restore(ctx, b, restored); err != nil {
				return err
			}
		}
		return nil
	})
	group.Go(func() error {
		var errs error
		for b := range restored {
			for _, t := range b.tasks {
				errs = errors.Join(errs, w.finish(ctx, t))
			}
		}
		return errs
	})
	return errors.Join(group.Wait(), w.giveBack(ctx))
}

// prepare leases items, makes them ready for the device, and passes them on in batches.
func (w *Worker) prepare(ctx context.Context, out chan<- batch) error {
	for ctx.Err() == nil {
		leases, err := w.cfg.Queue.Lease(ctx, w.cfg.Batch, w.cfg.Idle)
		if errors.Is(err, queue.ErrNotReady) {
			w.pause(ctx)
			continue
		}
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("lease work: %w", err)
		}
		var ready []*task
		for _, l := range leases {
			w.leases.add(l)
			t := w.start(ctx, l)
			if err := w.ready(t); err != nil {
				if err := w.settle(ctx, t, outcomeOf(ctx, err), manifest.Result{}); err != nil {
					return err
				}
				continue
			}
			ready = append(ready, t)
		}
		for _, b := range group(ready) {
			select {
			case out <- b:
			case <-ctx.Done():
				if err := w.release(ctx, b); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// pause waits while the campaign is being reset.
func (w *Worker) pause(ctx context.Context) {
	t := time.NewTimer(w.cfg.Idle)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// start opens the item's own trace, linked to the one that published it. Draining does not
// cancel its context: short stages are seen through.
func (w *Worker) start(ctx context.Context, l *queue.Lease) *task {
	ctx = context.WithoutCancel(ctx)
	link := trace.LinkFromContext(l.Context(context.Background()))
	ctx, _ = w.cfg.Tracer.Start(ctx, "process item", trace.WithNewRoot(), trace.WithLinks(link),
		trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithAttributes(attribute.String("ddiff.item.id", l.ID()), attribute.Int("ddiff.attempt", l.Attempt())))
	if l.Attempt() > 1 {
		w.cfg.Instruments.Redeliveries.Add(ctx, 1)
	}
	return &task{lease: l, ctx: ctx, leased: w.cfg.Now()}
}

// ready takes an item up to the point where the device is needed.
func (w *Worker) ready(t *task) error {
	if t.lease.Exhausted() {
		return errors.New("earlier attempts ended without an answer: the worker crashed or hung")
	}
	if err := w.decode(t); err != nil {
		return err
	}
	trace.SpanFromContext(t.ctx).SetAttributes(
		attribute.String("ddiff.campaign", t.item.Campaign), attribute.String("ddiff.task", t.item.Task),
		attribute.String("ddiff.image", t.item.Name), attribute.Int("ddiff.run", t.item.Run))
	err := w.stage(t, telemetry.StageFetch, func(ctx context.Context) error {
		return errors.Join(w.fetch(ctx, t), w.load(ctx, t))
	})
	if err != nil {
		return err
	}
	return w.stage(t, telemetry.StageMeasure, func(ctx context.Context) error { return w.measure(ctx, t) })
}

// stage runs one stage of an item in a span of its trace.
func (w *Worker) stage(t *task, name string, f func(ctx context.Context) error) error {
	ctx, end := w.cfg.Instruments.Stage(t.ctx, w.cfg.Tracer, name)
	err := f(ctx)
	end(err)
	return err
}

// group splits tasks into batches of equal plans and progress, in order.
func group(tasks []*task) []batch {
	var out []batch
	index := map[string]int{}
	for _, t := range tasks {
		// A plan that an operator was made from can be marshalled.
		key, _ := t.plan.Key()
		if t.begun != nil {
			key = fmt.Sprint(t.begun.State.Step, key)
		}
		i, ok := index[key]
		if !ok {
			i = len(out)
			index[key] = i
			out = append(out, batch{})
		}
		out[i].tasks = append(out[i].tasks, t)
	}
	return out
}

func (w *Worker) release(ctx context.Context, b batch) error {
	var errs error
	for _, t := range b.tasks {
		errs = errors.Join(errs, w.settle(ctx, t, outcome{released, ctx.Err()}, manifest.Result{}))
	}
	return errs
}

// restore solves a batch and passes it on. A batch that cannot be solved is settled here;
// when it holds several items they are tried one by one, so that one bad item harms no other.
func (w *Worker) restore(ctx context.Context, b batch, out chan<- batch) error {
	if ctx.Err() != nil {
		return w.release(ctx, b)
	}
	err := w.solve(ctx, b)
	if err == nil {
		out <- b
		return nil
	}
	if o := outcomeOf(ctx, err); len(b.tasks) > 1 && o.kind != released {
		for _, t := range b.tasks {
			if err := w.restore(ctx, batch{[]*task{t}}, out); err != nil {
				return err
			}
		}
		return nil
	}
	var errs error
	for _, t := range b.tasks {
		errs = errors.Join(errs, w.settle(ctx, t, outcomeOf(ctx, err), manifest.Result{}))
	}
	return errs
}

// solve runs the solver on a batch, chunk by chunk, and applies A to the answers.
func (w *Worker) solve(ctx context.Context, b batch) error {
	n, plan := len(b.tasks), b.tasks[0].plan
	s, err := w.cfg.Engine.Solver(plan, n)
	if err != nil {
		return err
	}
	w.cfg.Instruments.BatchFill.Record(ctx, float64(n)/float64(w.cfg.Batch))
	problems, states, curves := make([]solver.Problem, n), make([]solver.State, n), make([]solver.Curves, n)
	for i, t := range b.tasks {
		problems[i], states[i] = t.problem, s.Start(t.problem.Key)
		if t.begun != nil {
			states[i], curves[i] = t.begun.begin()
		}
	}
	begin := w.cfg.Now()
	ctx, end := w.cfg.Instruments.Stage(trace.ContextWithSpan(ctx, trace.SpanFromContext(b.tasks[0].ctx)), w.cfg.Tracer, telemetry.StageRestore,
		attribute.String("ddiff.task", plan.Task), attribute.Int("ddiff.batch", n), attribute.Int("ddiff.steps", s.Steps()))
	for _, t := range b.tasks[1:] {
		trace.SpanFromContext(ctx).AddLink(trace.LinkFromContext(t.ctx))
	}
	err = s.Resume(ctx, problems, states, curves, w.progress(ctx, n, states[0].Step))
	end(err)
	if err != nil {
		if ctx.Err() != nil {
			w.save(ctx, b, states, curves)
		}
		return err
	}
	seconds := w.cfg.Now().Sub(begin).Seconds() / float64(n)
	for i, t := range b.tasks {
		t.solution, t.seconds, t.batch = solver.Solution{X: states[i].X, Curves: curves[i]}, seconds, n
		if t.applied, err = w.cfg.Engine.Apply(t.ctx, t.op, states[i].X, t.problem.Draw); err != nil {
			return err
		}
	}
	return nil
}

// progress returns what is called after every chunk of steps: it makes the chunk's span,
// counts, and extends the leases.
func (w *Worker) progress(ctx context.Context, n, at int) func(step int) error {
	since := w.cfg.Now()
	return func(step int) error {
		now, made := w.cfg.Now(), step-at
		_, span := w.cfg.Tracer.Start(ctx, "steps", trace.WithTimestamp(since),
			trace.WithAttributes(attribute.Int("ddiff.step.first", at+1), attribute.Int("ddiff.step.last", step)))
		span.End(trace.WithTimestamp(now))
		w.cfg.Instruments.Steps.Add(ctx, int64(made*n))
		w.cfg.Instruments.StepDuration.Record(ctx, now.Sub(since).Seconds()/float64(made))
		w.cfg.Steps(made * n)
		at, since = step, now
		beat, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if err := w.leases.beat(beat); err != nil {
			w.cfg.Logger.Warn("could not extend a lease", "reason", err)
		}
		return nil
	}
}
