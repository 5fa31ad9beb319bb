package gpuworker

import (
	"context"
	"errors"
	"sync"

	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/errgroup"
)

// inParallel calls settle for all tasks, several at a time, and joins the errors: an item takes several round trips to the
// queue.
func inParallel(tasks []*task, settle func(t *task) error) error {
	var (
		group errgroup.Group
		mu    sync.Mutex
		errs  error
	)
	group.SetLimit(parallelReleases)
	for _, t := range tasks {
		group.Go(func() error {
			err := settle(t)
			mu.Lock()
			defer mu.Unlock()
			errs = errors.Join(errs, err)
			return nil
		})
	}
	_ = group.Wait() // the functions return nil
	return errs
}

// abandon settles the items of a worker with a stage that does not return. The attempt at the items of this stage counts,
// unless their campaign is cancelled or the worker drains; all others are released. The assignments are not ended, because
// this could close an engine in use.
func (w *Worker) abandon(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	hung := w.watchdog.Hung()
	return inParallel(w.leases.unsettled(), func(t *task) error {
		if !t.claim() {
			return nil
		}
		o := outcome{kind: released}
		action, settle := "release", func() error { return w.releaseItem(ctx, t) }
		if reason := hung[t]; reason != nil && !t.assigned.cancelled() {
			o = outcome{retried, reason}
			action, settle = "settle", func() error { return w.report(ctx, t, o, nil) }
		}
		err := w.ignoreTransient(action, t, settle())
		w.describe(t, o)
		if hung[t] == nil { // the other spans are open as long as their stage runs
			trace.SpanFromContext(t.ctx).End()
		}
		return err
	})
}
