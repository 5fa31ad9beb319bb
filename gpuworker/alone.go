package gpuworker

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"ddiff/internal/queue"
	"ddiff/internal/retry"
)

// suspect reports whether an item runs alone: an earlier attempt ended without an answer, a worker asked for a second
// opinion, or the environment failed too often. If a worker dies that holds nothing else, its item is to blame.
func suspect(l *queue.Lease) bool {
	m := l.Marks()
	return l.Attempt() > 1 || len(m.Disputed) > 0 || m.Faults >= maxFaults
}

// campaigns is a dispatcher of several campaigns, a Fleet. A worker tells it how to go on with one of them.
type campaigns interface {
	// Suspend skips a campaign for a while.
	Suspend(campaign string, d time.Duration, reason error)
	// LeaseOne leases single items of a campaign from then on, or batches again.
	LeaseOne(campaign string, one bool)
	// LeaseFirst leases items, or the preflight, of a campaign before those of the others, once.
	LeaseFirst(campaign string)
}

// startLeases starts the admitted leases of one assignment, and waits for the end of a suspect.
func (w *Worker) startLeases(ctx context.Context, a Assignment, leases []*queue.Lease, out chan<- []*task) error {
	if c := w.breaker.Circuit(a.Campaign); c != nil && a.Campaign != "" {
		w.releaseEach(ctx, leases, 0) // the test may take longer than a lease
		leases = nil
		w.testCampaign(ctx, a.Campaign, c)
	}
	received := len(leases)
	leases, alone := w.admit(ctx, a.Campaign, leases)
	if w.campaigns != nil && received > 0 {
		w.campaigns.LeaseOne(a.Campaign, alone || len(leases) == 0)
	}
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

// admit returns the leases to start, and releases the others. A suspect starts only while the worker holds no other item
// in any stage; otherwise the suspect goes to the end of the queue. alone: start is one suspect, and the worker must
// settle it before it leases another item.
func (w *Worker) admit(ctx context.Context, campaign string, leases []*queue.Lease) (start []*queue.Lease, alone bool) {
	var suspects, passed []*queue.Lease
	for _, l := range leases {
		switch {
		case !suspect(l):
			start = append(start, l)
		case w.leavesToOthers(ctx, campaign, l):
			passed = append(passed, l)
		default:
			suspects = append(suspects, l)
		}
	}
	w.releaseEach(ctx, passed, 1) // behind the other items of the queue
	switch {
	case len(suspects) == 0:
		if len(start) == 0 && len(passed) > 0 {
			w.pauseAfterPass(ctx, campaign, passed)
		}
		return start, false
	case len(start) > 0:
		w.releaseEach(ctx, suspects, 0)
		return start, false
	case w.leases.count() > 0:
		// The queue may hold suspects only. Leasing again at once would release the same suspects.
		w.releaseEach(ctx, suspects, 0)
		w.awaitSettled(ctx)
		// Items of another campaign would make the suspect wait again.
		if w.campaigns != nil {
			w.campaigns.LeaseFirst(campaign)
		}
		return nil, false
	}
	w.releaseEach(ctx, suspects[1:], 0)
	return suspects[:1], true
}

const (
	// maxPasses is how often a worker releases an item that it disputed for other workers. Then the worker gives the
	// second opinion itself.
	maxPasses = 5
	// unprovenPasses is maxPasses of a worker that has restored no item of the campaign: it may be sick, and the other
	// workers busy. With the longest pause it is half an hour.
	unprovenPasses = 120
	// passPause is the pause after each second pass, if nothing else was leased with it. It doubles with each pass up to
	// maxPasses, times a random factor from 1/2 to 3/2: two workers that wait for each other's opinion would else wake
	// together, and each lease the item that it disputed itself.
	passPause = time.Second
	// passesEnd is how long a worker then passes no further items.
	passesEnd = 5 * time.Minute
)

// leavesToOthers reports whether another worker should take an item that this worker disputed.
func (w *Worker) leavesToOthers(ctx context.Context, campaign string, l *queue.Lease) bool {
	m, limit, now := l.Marks(), unprovenPasses, w.cfg.Now()
	if w.breaker.LastGood(campaign) != nil {
		limit = maxPasses
	}
	if w.cfg.Peers == nil || !slices.Contains(m.Disputed, w.cfg.Name) || now.Before(w.passAgain) {
		return false
	}
	if m.Passes >= limit {
		w.passAgain = now.Add(passesEnd)
		return false
	}
	n, err := w.cfg.Peers(ctx)
	return err != nil || n > 0
}

// pauseAfterPass lets other workers lease the passed items first: it skips the campaign, or waits if the dispatcher has
// no others.
func (w *Worker) pauseAfterPass(ctx context.Context, campaign string, passed []*queue.Lease) {
	least := maxPasses
	for _, l := range passed {
		least = min(least, l.Marks().Passes)
	}
	if least%2 == 0 { // the next item may be another worker's: two that pause after each pass can meet their own items for ever
		return
	}
	pause := passPause << least / 2
	pause += rand.N(2 * pause)
	if w.campaigns != nil {
		w.campaigns.Suspend(campaign, pause, nil)
		return
	}
	_ = retry.Sleep(ctx, pause) // the caller checks ctx
}

// releaseEach releases items that were not started, and adds passes to their marks.
func (w *Worker) releaseEach(ctx context.Context, leases []*queue.Lease, passes int) {
	ctx, cancel := w.shutdownContext(context.WithoutCancel(ctx))
	defer cancel()
	_ = inParallel(leases, func(l *queue.Lease) error { // errors are logged
		m := l.Marks()
		m.Passes += passes
		if err := l.ReleaseMarked(ctx, m); err != nil {
			w.cfg.Logger.Warn("could not release item", "id", l.ID(), "reason", err)
		}
		return nil
	})
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
