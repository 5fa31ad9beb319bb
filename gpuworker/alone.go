package gpuworker

import (
	"context"

	"golang.org/x/sync/errgroup"

	"ddiff/queue"
)

// parallelReleases is the number of leases that a worker releases at a time.
const parallelReleases = 16

// suspect reports whether an item runs alone: an earlier attempt ended without an answer, or a worker asked for a second
// opinion. If a worker dies that holds nothing else, its item is to blame.
func suspect(l *queue.Lease) bool { return l.Attempt() > 1 || len(l.Marks().Disputed) > 0 }

// startLeases starts the admitted leases of one assignment, and waits for the end of a suspect.
func (w *Worker) startLeases(ctx context.Context, a Assignment, leases []*queue.Lease, out chan<- []*task) error {
	leases, alone := w.admit(ctx, leases)
	if len(leases) == 0 {
		if a.Done != nil {
			a.Done()
		}
		return nil
	}
	err := w.prepareAll(ctx, a, leases, out)
	if err == nil && alone {
		w.awaitSettled(ctx)
	}
	return err
}

// admit returns the leases to start, and releases the others. A suspect starts only while the worker holds no other item,
// in any stage; with other items it goes to the end of the queue. alone: leases is one suspect, and the worker may lease
// no other item before it is settled.
func (w *Worker) admit(ctx context.Context, leases []*queue.Lease) (start []*queue.Lease, alone bool) {
	var suspects []*queue.Lease
	for _, l := range leases {
		if suspect(l) {
			suspects = append(suspects, l)
		} else {
			start = append(start, l)
		}
	}
	switch {
	case len(suspects) == 0:
		return start, false
	case len(start) > 0:
		w.returnLeases(ctx, suspects)
		return start, false
	case w.leases.count() > 0:
		// The queue may hold suspects only: wait, so that the next ones find the worker idle.
		w.returnLeases(ctx, suspects)
		w.awaitSettled(ctx)
		return nil, false
	}
	w.returnLeases(ctx, suspects[1:])
	return suspects[:1], true
}

// returnLeases releases items that were not started.
func (w *Worker) returnLeases(ctx context.Context, leases []*queue.Lease) {
	ctx, cancel := w.shutdownContext(context.WithoutCancel(ctx))
	defer cancel()
	var group errgroup.Group
	group.SetLimit(parallelReleases)
	for _, l := range leases {
		group.Go(func() error {
			if err := l.Release(ctx); err != nil {
				w.cfg.Logger.Warn("could not release item", "id", l.ID(), "reason", err)
			}
			return nil
		})
	}
	_ = group.Wait() // never returns an error
}

// awaitSettled waits until the worker holds no item, or ctx ends.
func (w *Worker) awaitSettled(ctx context.Context) {
	for w.leases.count() > 0 {
		select {
		case <-w.settled:
		case <-ctx.Done():
			return
		}
	}
}
