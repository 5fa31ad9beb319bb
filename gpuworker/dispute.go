package gpuworker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"ddiff/internal/retry"
	"ddiff/queue"
)

const (
	// maxPasses is how often a worker releases an item that it disputed for other workers. Then the worker gives the
	// second opinion itself.
	maxPasses = 5
	// unprovenPasses is maxPasses of a worker that has restored no item of the campaign: it may be sick, and the other
	// workers busy. With the longest pause it is half an hour.
	unprovenPasses = 60
	// passPause is the pause if there is nothing else to lease, after the first pass. It doubles with each pass up to
	// maxPasses, times a random factor from 1/2 to 3/2: two workers that wait for each other's opinion would else wake
	// together, and each lease the item that it disputed itself.
	passPause = time.Second
	// passesEnd is how long a worker then passes no further items.
	passesEnd = 5 * time.Minute
)

// leavesToOthers reports whether another worker should take an item that this worker disputed.
func (w *Worker) leavesToOthers(ctx context.Context, campaign string, l *queue.Lease) bool {
	m, limit := l.Marks(), maxPasses
	if w.breaker.LastGood(campaign) == nil {
		limit = unprovenPasses
	}
	if w.cfg.Peers == nil || !slices.Contains(m.Disputed, w.cfg.Name) || w.cfg.Now().Before(w.passAgain) {
		return false
	}
	if m.Passes >= limit {
		w.passAgain = w.cfg.Now().Add(passesEnd)
		return false
	}
	n, err := w.cfg.Peers(ctx)
	return err != nil || n > 0
}

// pass releases items for other workers, behind the other items of the queue. again: the worker has passed one of them
// since its last pause, thus the queue has nothing else for it.
func (w *Worker) pass(ctx context.Context, leases []*queue.Lease) (again bool) {
	for _, l := range leases {
		again = again || w.passed[l.ID()]
		w.passed[l.ID()] = true
	}
	w.releaseEach(ctx, leases, func(m queue.Marks) queue.Marks {
		m.Passes++
		return m
	})
	return again
}

// pauseAfterPass lets other workers lease the passed items first: it skips the campaign, or waits if the dispatcher has
// no others.
func (w *Worker) pauseAfterPass(ctx context.Context, campaign string, passed []*queue.Lease) {
	clear(w.passed)
	passes := maxPasses
	for _, l := range passed {
		passes = min(passes, l.Marks().Passes)
	}
	pause := passPause << passes / 2
	pause += rand.N(2 * pause)
	if s, ok := w.cfg.Work.(suspender); ok {
		s.Suspend(campaign, pause, nil)
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
