package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"ddiff/manifest"
)

// tellEvery is how often a status is written that has not changed.
const tellEvery = 5 * time.Second

// look holds the queue against the ledger and tells the status.
func (r *runner) look(ctx context.Context) error {
	waiting, flight, err := r.queue.Depth(ctx)
	if err != nil {
		there, e := r.queue.Exists(ctx)
		if e != nil || there {
			return fmt.Errorf("look at the queue: %w", err)
		}
		r.log.Warn("the campaign's queue is gone")
		return r.recover(ctx)
	}
	if err := r.tell(ctx, int(flight)); err != nil {
		return err
	}
	if r.complete(int(waiting + flight)) {
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
	r.log.Warn("the queue holds fewer items than are missing", "queued", waiting+flight, "missing", r.ledger.open)
	return r.recover(ctx)
}

// complete tells whether the queue holds all that it should.
func (r *runner) complete(queued int) bool {
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

// recover brings back what the queue has lost.
func (r *runner) recover(ctx context.Context) error {
	if !r.rec.Released {
		// Preflight or canary: they are published in a new round.
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
		r.log.Warn("published again what had neither result nor place in the queue", "items", n)
	}
	return err
}

// tell writes the campaign's status, when it has changed or is old.
func (r *runner) tell(ctx context.Context, flight int) error {
	now := r.s.cfg.Now()
	s := manifest.Status{
		ID: r.id, Phase: r.rec.Phase, Reason: r.rec.Reason, Complete: r.whole,
		Counts:  r.ledger.total(flight, r.rec.Phase == manifest.PhaseCancelled),
		Workers: r.s.workers.seen(), At: now.UTC(),
	}
	if !s.Phase.Ended() {
		s.Rate, _ = r.pace.rate(now)
		s.Left, s.LeftLow, s.LeftHigh = r.pace.left(now, s.Counts.Pending+s.Counts.Running)
	}
	if s.Counts == r.status.Counts && s.Phase == r.status.Phase && s.Workers == r.status.Workers &&
		s.At.Sub(r.status.At) < tellEvery {
		return nil
	}
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := r.s.cfg.Board.Put(ctx, manifest.KeyStatusPrefix+r.id, data); err != nil {
		return fmt.Errorf("tell status: %w", err)
	}
	r.status = s
	return nil
}
