package gpuworker

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/errgroup"
)

// parallelCalls is the number of items that inParallel settles at a time.
const parallelCalls = 16

// inParallel calls settle for all items, several at a time, and joins the errors: an item takes several round trips to the
// queue.
func inParallel[T any](items []T, settle func(item T) error) error {
	var group errgroup.Group
	group.SetLimit(parallelCalls)
	errs := make([]error, len(items))
	for i, item := range items {
		group.Go(func() error {
			errs[i] = settle(item)
			return nil
		})
	}
	_ = group.Wait() // the functions return nil
	return errors.Join(errs...)
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
