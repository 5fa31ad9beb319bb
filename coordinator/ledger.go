package coordinator

import (
	"context"
	"slices"
	"time"

	"ddiff/internal/coordinator/health"
	"ddiff/internal/coordinator/ledger"
	"ddiff/internal/coordinator/shard"
	"ddiff/restore/item"
)

// restoreLedger rebuilds the ledger from the stored windows, rounds and outcomes.
func (r *runner) restoreLedger(ctx context.Context) error {
	r.windows = newWindows(r.s.cfg.Store, r.id)
	if err := r.windows.restore(ctx, func(w *shard.Window) { r.outcomes.count(w) }); err != nil {
		return err
	}
	if err := r.rounds.restore(ctx, r.outcomes.ledger); err != nil {
		return err
	}
	var err error
	r.outcomes.seen, err = r.outcomes.parts.Enter(ctx, r.outcomes.ledger)
	return err
}

// openParts prepares the stored parts of the ledger.
func (r *runner) openParts(context.Context) error {
	r.outcomes.parts = ledger.NewParts(ledger.PartsConfig{
		Store: r.s.cfg.Store, Campaign: r.id, Fold: r.s.cfg.Fold, Relief: health.StreamTicks * r.s.cfg.Tick, Now: r.s.cfg.Now, Logger: r.log,
		Purge: func(ctx context.Context, through uint64) error { return r.queue.PurgeResults(ctx, through) },
	})
	return nil
}

// clockSkew is how much the clock of the store may be behind.
const clockSkew = time.Minute

// settleFound settles the items that have a result in storage. It reads the results that may be this campaign's own, whose outcomes were lost:
// their device-seconds count.
func (r *runner) settleFound(ctx context.Context) error {
	var own []item.Item
	err := r.results.each(ctx, func(id string, stored time.Time) {
		if r.outcomes.ledger.State(id) == ledger.Pending && !stored.Before(r.rec.Submitted.Add(-clockSkew)) {
			own = append(own, item.Item{ID: id, Name: id})
		} else if r.outcomes.ledger.Settle(id, r.rec.Round, ledger.Done, "") > 0 {
			r.outcomes.parts.NoteOutcome(id, r.rec.Round, ledger.Done, "", true)
		}
	})
	if err != nil {
		return err
	}
	return r.outcomes.settleStored(ctx, &r.results, own, r.rec)
}

// settleRead is settleFound that reads each result which the ledger did not have.
func (r *runner) settleRead(ctx context.Context) error {
	found := map[string]bool{}
	err := r.results.each(ctx, func(id string, _ time.Time) {
		if r.outcomes.ledger.State(id) == ledger.Pending {
			found[id] = true
		}
	})
	if err != nil || len(found) == 0 {
		return err
	}
	return r.windows.each(ctx, func(w *shard.Window) error {
		return r.outcomes.settleStored(ctx, &r.results, slices.DeleteFunc(w.Items, func(it item.Item) bool { return !found[it.ID] }), r.rec)
	})
}

// reopenMissing makes items pending again that are done but have no result in storage.
func (r *runner) reopenMissing(ctx context.Context) error {
	present := map[item.Identity]bool{}
	if err := r.results.each(ctx, func(id string, _ time.Time) {
		if k, ok := item.ParseIdentity(id); ok {
			present[k] = true
		}
	}); err != nil {
		return err
	}
	missing := ledger.Round{Missing: true}
	err := r.windows.each(ctx, func(w *shard.Window) error {
		for _, it := range w.Items {
			if k, ok := item.ParseIdentity(it.ID); ok && !present[k] && r.outcomes.ledger.State(it.ID) == ledger.Done {
				missing.Items = append(missing.Items, it.ID)
			}
		}
		return nil
	})
	if err != nil || len(missing.Items) == 0 {
		return err
	}
	r.log.Warn("results are missing from storage", "items", len(missing.Items))
	_, err = r.rounds.start(ctx, r.outcomes.ledger, missing)
	return err
}
