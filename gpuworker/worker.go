package gpuworker

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"ddiff/internal/lifecycle"
	"ddiff/manifest"
	"ddiff/queue"
)

// Worker restores items until it is drained. Make it with New.
type Worker struct {
	cfg    Config
	leases *held
	told   told
}

// told is what a worker says about itself, see [Worker.Beat].
type told struct {
	items    atomic.Int64
	draining atomic.Bool
	campaign atomic.Value // string
}

// New checks the configuration.
func New(cfg Config) (*Worker, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure worker: %w", err)
	}
	cfg = cfg.withDefaults()
	if cfg.Tuner == nil {
		t, err := NewTuner(TunerConfig{Logger: cfg.Logger})
		if err != nil {
			return nil, fmt.Errorf("configure worker: %w", err)
		}
		cfg.Tuner = t
	}
	w := &Worker{cfg: cfg, leases: newHeld(cfg.AckWait/3, cfg.StageLimit, cfg.Now, cfg.Logger)}
	w.told.campaign.Store("")
	return w, nil
}

// batch is a group of items of one assignment with equal plans and equal progress.
type batch struct{ tasks []*task }

// Run works until ctx ends, which drains the worker, or until Config.Once is over, or until
// the queue or the device fails for good. After a drain every lease is settled or given back,
// and Run returns nil.
func (w *Worker) Run(ctx context.Context) error {
	// Leases are extended until the last of them is given back.
	defer lifecycle.Go(context.WithoutCancel(ctx), w.leases.guard).Stop()
	defer context.AfterFunc(ctx, func() { w.told.draining.Store(true) })()

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
	busy := w.cfg.Now()
	for ctx.Err() == nil {
		begin := w.cfg.Now()
		a, leases, err := w.cfg.Work.Next(ctx, w.cfg.Idle)
		if err != nil && ctx.Err() == nil {
			if err := w.passOver(ctx, err); err != nil {
				return err
			}
		}
		switch {
		case len(leases) > 0:
			if w.cfg.Simulate != nil {
				w.cfg.Simulate.pulled(w.cfg.Now().Sub(begin))
			}
			if err := w.pass(ctx, a, leases, out); err != nil {
				return err
			}
			busy = w.cfg.Now()
		case w.leases.count() > 0:
			busy = w.cfg.Now()
		case w.cfg.Once > 0 && w.cfg.Now().Sub(busy) >= w.cfg.Once:
			w.cfg.Logger.Info("there is no more work", "since", w.cfg.Once)
			return nil
		}
	}
	return nil
}

// passOver waits a moment after work could not be leased, if that is worth it.
func (w *Worker) passOver(ctx context.Context, err error) error {
	if !errors.Is(err, queue.ErrNotReady) && !errors.Is(err, queue.ErrUnavailable) {
		if !w.cfg.Outlast || errors.Is(err, queue.ErrClosed) {
			return fmt.Errorf("lease work: %w", err)
		}
		w.cfg.Logger.Warn("could not lease work, trying again", "reason", err)
	}
	pause(ctx, w.cfg.Idle)
	return nil
}

// pass makes the items of one assignment ready and passes them on.
func (w *Worker) pass(ctx context.Context, a Assignment, leases []*queue.Lease, out chan<- batch) error {
	on := newAssigned(a, len(leases))
	w.told.campaign.Store(a.Campaign)
	tasks := make([]*task, len(leases))
	for i, l := range leases { // all of them, before the first one takes its time
		w.leases.add(l)
		tasks[i] = w.start(ctx, on, l)
	}
	var ready []*task
	for _, t := range tasks {
		res, err := w.ready(ctx, t)
		if err != nil || res != nil {
			if res == nil {
				res = &manifest.Result{}
			}
			if err := w.settle(ctx, t, outcomeOf(ctx, t, err), *res); err != nil {
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
	return nil
}

// group splits tasks into batches of equal plans and progress, in order.
func group(tasks []*task) []batch {
	var out []batch
	index := map[string]int{}
	for _, t := range tasks {
		// A plan that an operator was made from can be marshalled.
		key, _ := t.plan.Key()
		switch {
		case t.preflight != nil:
			key = "preflight"
		case t.resumed != nil:
			key = fmt.Sprint(t.resumed.State.Step, key)
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

// release remembers a batch that is to be given back.
func (w *Worker) release(ctx context.Context, b batch) error {
	var errs error
	for _, t := range b.tasks {
		errs = errors.Join(errs, w.settle(ctx, t, outcome{released, ctx.Err()}, manifest.Result{}))
	}
	return errs
}

// stage runs one stage of an item in a span of its trace. While it goes on the leases are
// extended, up to a limit.
func (w *Worker) stage(t *task, name string, f func(ctx context.Context) error) error {
	defer w.leases.begin(w.cfg.StageLimit)()
	ctx, end := w.cfg.Instruments.Stage(t.ctx, w.cfg.Tracer, name)
	err := f(ctx)
	end(err)
	return err
}
