package coordinator

import (
	"context"
	"fmt"
	"time"

	"ddiff/internal/record"
)

// checkQueue publishes the campaign's status and compares the queue with the ledger. When the queue has seemed to hold
// too few items for Config.Stall, or is gone, and the loss is confirmed, checkQueue publishes the items again.
func (r *runner) checkQueue(ctx context.Context) error {
	if r.rec.Released {
		if err := r.outcomes.parts.Fold(ctx, r.outcomes.seen, r.s.streams.ResultsFull()); err != nil {
			return err
		}
	}
	if err := r.outcomes.parts.Save(ctx, r.outcomes.seen, false); err != nil {
		return err
	}
	waiting, leased, err := r.queue.Depth(ctx)
	if err != nil {
		exists, e := r.queue.Exists(ctx)
		if e != nil || exists {
			return fmt.Errorf("check the queue: %w", err)
		}
		r.log.Warn("the campaign's queue is gone")
		if err := r.openQueue(ctx); err != nil {
			return err
		}
		return r.restoreLost(ctx)
	}
	r.report(int(waiting), int(leased))
	if err := r.publishStatus(ctx, int(leased)); err != nil {
		return err
	}
	if err := r.hurry(ctx); err != nil {
		return err
	}
	if err := r.queue.sendRest(ctx, r.pending); err != nil {
		return err
	}
	if r.queue.lacks(int(waiting+leased), r.standing().expected()-len(r.queue.unsent), r.s.cfg.Now()) < r.s.cfg.Stall {
		return nil
	}
	return r.restoreLost(ctx)
}

// restoreLost publishes the pending items again if the queue has lost some. It drops the queue only if the loss is certain. An outcome is published
// before its item is acknowledged, so after the size is read, the result stream, or the store where a worker has found an item restored, has all items
// that had left the queue. Outcomes that arrive later make the loss smaller, never larger, so in a busy queue a small loss may be found later, at the
// latest when the other items are settled.
func (r *runner) restoreLost(ctx context.Context) error {
	size, err := r.queue.Size(ctx)
	if err != nil {
		return fmt.Errorf("check the queue: %w", err)
	}
	lost := func() int { return r.standing().expected() - len(r.queue.unsent) - int(size) }
	if err := r.catchUp(ctx); err != nil {
		return err
	}
	if lost() > 0 {
		if err := r.settleListed(r, ctx); err != nil {
			return err
		}
	}
	if lost() <= 0 {
		r.queue.stalled = time.Time{}
		return nil
	}
	r.log.Warn("the queue has lost items", "items", lost(), "pending", r.outcomes.ledger.Open())
	return r.recover(ctx)
}

// catchUp enters all outcomes into the ledger that the result stream has now. It asks again while it waits, because the
// newest outcome may leave the stream before it is read.
func (r *runner) catchUp(ctx context.Context) error {
	again := time.NewTicker(catchUpInterval)
	defer again.Stop()
	for {
		last, err := r.queue.LastResult(ctx)
		if err != nil {
			return fmt.Errorf("read the last result: %w", err)
		}
		for waiting := true; waiting; {
			if r.outcomes.seen >= last {
				return nil
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case e := <-r.outcomes.events:
				if err := r.enterEvents(e); err != nil {
					return err
				}
			case <-again.C:
				waiting = false
			}
		}
	}
}

// catchUpInterval is the interval at which catchUp looks for the newest outcome again.
const catchUpInterval = 5 * time.Second

// recover publishes the items again that the queue has lost.
func (r *runner) recover(ctx context.Context) error {
	if !r.rec.Released {
		// Preflight and canary start again in a new round.
		if err := r.queue.drop(ctx); err != nil {
			return err
		}
		r.trial, r.queue.stalled = trial{}, time.Time{}
		if err := r.openQueue(ctx); err != nil {
			return err
		}
		return r.save(ctx, func(c *record.Campaign) {
			if c.Round++; c.Phase != record.PhasePaused {
				c.Phase = record.PhaseQueued
			}
		})
	}
	n, err := r.replaceQueue(ctx)
	switch {
	case err != nil:
		return err
	case n == 0:
		r.log.Info("set up the queue again; it had lost no item")
	default:
		r.log.Warn("published lost items again", "items", n)
	}
	return nil
}

// reconcile compares the manifest with the stored results, replaces the content of the queue with the difference, and
// returns the number of items that it published.
func (r *runner) reconcile(ctx context.Context) (int, error) {
	if err := r.settleListed(r, ctx); err != nil {
		return 0, err
	}
	return r.replaceQueue(ctx)
}

// replaceQueue replaces the content of the queue with the pending items, and returns their number.
func (r *runner) replaceQueue(ctx context.Context) (int, error) {
	if err := r.queue.drop(ctx); err != nil {
		return 0, err
	}
	// The new queue does not refuse items that were published before.
	if err := r.openQueue(ctx); err != nil {
		return 0, err
	}
	n, err := r.republish(ctx, func(string) bool { return true })
	r.report(n, 0) // until the next check, which counts the leased items
	r.queue.stalled = r.s.cfg.Now()
	return n, err
}
