package coordinator

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"ddiff/manifest"
)

// statusInterval is how often an unchanged status is published.
const statusInterval = 5 * time.Second

// checkQueue publishes the campaign's status and compares the queue with the ledger. When the queue has held too few
// items for Config.Stall, it publishes the missing items again.
func (r *runner) checkQueue(ctx context.Context) error {
	waiting, leased, err := r.queue.Depth(ctx)
	if err != nil {
		exists, e := r.queue.Exists(ctx)
		if e != nil || exists {
			return fmt.Errorf("check the queue: %w", err)
		}
		r.log.Warn("the campaign's queue is gone")
		return r.recover(ctx)
	}
	if err := r.publishStatus(ctx, int(leased)); err != nil {
		return err
	}
	if r.queueComplete(int(waiting + leased)) {
		r.stalled = time.Time{}
		return nil
	}
	now := r.s.cfg.Now()
	if r.stalled.IsZero() {
		r.stalled = now
	}
	if now.Sub(r.stalled) < r.s.cfg.Stall {
		return nil
	}
	// The ledger may be behind. Workers publish an outcome before they acknowledge the item, so the stream has the
	// outcomes of all items that have left the queue by now.
	if waiting, leased, err = r.queue.Depth(ctx); err != nil {
		return fmt.Errorf("check the queue: %w", err)
	}
	if err := r.catchUp(ctx); err != nil {
		return err
	}
	if r.queueComplete(int(waiting + leased)) {
		r.stalled = time.Time{}
		return nil
	}
	r.log.Warn("the queue holds fewer items than are pending", "queued", waiting+leased, "pending", r.ledger.open)
	return r.recover(ctx)
}

// queueComplete reports whether a queue of so many items holds every published pending item.
func (r *runner) queueComplete(queued int) bool {
	switch r.rec.Phase {
	case manifest.PhasePreflight:
		return r.checked != nil || queued > 0
	case manifest.PhaseCanary:
		missing := 0
		for _, id := range r.canary {
			if r.ledger.state(id) == pending {
				missing++
			}
		}
		return queued >= missing
	case manifest.PhaseRunning:
		return r.rec.Shards < r.stored || queued >= r.ledger.open
	}
	return true
}

// recover publishes the items again that the queue has lost.
func (r *runner) recover(ctx context.Context) error {
	if !r.rec.Released {
		// Preflight and canary start again in a new round.
		if err := r.queue.Drop(ctx); err != nil {
			return fmt.Errorf("drop work: %w", err)
		}
		r.canary, r.checked, r.stalled = nil, nil, time.Time{}
		if err := r.openQueue(ctx); err != nil {
			return err
		}
		return r.save(ctx, func(c *manifest.Campaign) {
			if c.Round++; c.Phase != manifest.PhasePaused {
				c.Phase = manifest.PhaseQueued
			}
		})
	}
	n, err := r.reconcile(ctx)
	if err == nil {
		r.log.Warn("published lost items again", "items", n)
	}
	return err
}

// publishStatus writes the campaign's status to the board if it has changed or is old.
func (r *runner) publishStatus(ctx context.Context, leased int) error {
	now := r.s.cfg.Now()
	s := manifest.Status{
		ID: r.id, Phase: r.rec.Phase, Reason: r.rec.Reason, Complete: r.complete,
		Counts:  r.ledger.total(leased, r.rec.Phase == manifest.PhaseCancelled),
		Workers: r.s.workers.live(), At: now.UTC(),
	}
	if !s.Phase.Ended() {
		s.Rate, _ = r.pace.rate(now)
		s.Left, s.LeftLow, s.LeftHigh = r.pace.remaining(now, s.Counts.Pending+s.Counts.Running)
	}
	if s.Counts == r.status.Counts && s.Phase == r.status.Phase && s.Workers == r.status.Workers &&
		s.At.Sub(r.status.At) < statusInterval {
		return nil
	}
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := r.s.cfg.Board.Put(ctx, manifest.KeyStatusPrefix+r.id, data); err != nil {
		return fmt.Errorf("publish status: %w", err)
	}
	r.status = s
	return nil
}
