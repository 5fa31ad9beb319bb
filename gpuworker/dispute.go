package gpuworker

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ddiff/internal/retry"
	"ddiff/queue"
)

// leavesToOthers reports whether another worker should take an item that this worker disputed.
func (w *Worker) leavesToOthers(ctx context.Context, campaign string, l *queue.Lease) bool {
	m := l.Marks()
	if w.cfg.Peers == nil || !slices.Contains(m.Disputed, w.cfg.Name) || !w.passes.May(m.Passes, w.breaker.LastGood(campaign) != nil) {
		return false
	}
	n, err := w.cfg.Peers(ctx)
	return err != nil || n > 0
}

// pass releases items for other workers, behind the other items of the queue. again: one of them was passed before.
func (w *Worker) pass(ctx context.Context, leases []*queue.Lease) (again bool) {
	for _, l := range leases {
		again = w.passes.Add(l.ID()) || again
	}
	w.releaseEach(ctx, leases, 1)
	return again
}

// pauseAfterPass lets other workers lease the passed items first: it skips the campaign, or waits if the dispatcher has
// no others.
func (w *Worker) pauseAfterPass(ctx context.Context, campaign string, passed []*queue.Lease) {
	least := passed[0].Marks().Passes
	for _, l := range passed {
		least = min(least, l.Marks().Passes)
	}
	pause := w.passes.Pause(least)
	if w.campaigns != nil {
		w.campaigns.Suspend(campaign, pause, nil)
		return
	}
	_ = retry.Sleep(ctx, pause) // the caller checks ctx
}

// confirm returns the reason of a disputed item that got its second opinion.
func (w *Worker) confirm(disputed []string, reason error) error {
	others := slices.DeleteFunc(slices.Clone(disputed), func(name string) bool { return name == w.cfg.Name })
	if len(others) == 0 {
		return reason
	}
	return fmt.Errorf("%w; worker %s could not restore it either", reason, strings.Join(others, ", "))
}
