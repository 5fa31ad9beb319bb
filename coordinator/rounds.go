package coordinator

import (
	"context"
	"slices"

	"ddiff/coordinator/ledger"
	"ddiff/manifest"
)

// startRound gives a round its number, stores it, counts it in the record, and reopens its items in the ledger. If a
// coordinator dies after it has stored the round, the next one restores it. The items are published after that.
func (r *runner) startRound(ctx context.Context, next ledger.Round) (ledger.Round, error) {
	next.Round = r.rec.Round + 1
	if err := ledger.StoreRound(ctx, r.s.cfg.Store, r.id, next); err != nil {
		return next, err
	}
	if err := r.save(ctx, func(c *manifest.Campaign) { c.Round = max(c.Round, next.Round) }); err != nil {
		return next, err
	}
	r.ledger.Begin(next)
	return next, nil
}

// restoreRounds reopens the items of all stored rounds, and restores the rounds of pending commands.
func (r *runner) restoreRounds(ctx context.Context) error {
	r.retries = map[string]ledger.Round{}
	for old, err := range ledger.Rounds(ctx, r.s.cfg.Store, r.id) {
		if err != nil {
			return err
		}
		r.ledger.Begin(old)
		if slices.ContainsFunc(r.rec.Commands, func(c manifest.Command) bool { return c.ID == old.Command }) {
			r.retries[old.Command] = old
		}
		if old.Round > r.rec.Round {
			if err := r.save(ctx, func(c *manifest.Campaign) { c.Round = max(c.Round, old.Round) }); err != nil {
				return err
			}
		}
	}
	return nil
}
