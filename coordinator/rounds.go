package coordinator

import (
	"context"
	"slices"

	"ddiff/coordinator/ledger"
	"ddiff/manifest"
)

// rounds makes items of a campaign pending again, in rounds.
type rounds struct {
	*record
	retries map[string]ledger.Round // of pending commands, by command
}

// start gives a round its number, stores it, counts it in the record, and reopens its items in the ledger. If a
// coordinator dies after it has stored the round, the next one restores it. The items are published after that.
func (r *rounds) start(ctx context.Context, l *ledger.Ledger, next ledger.Round) (ledger.Round, error) {
	next.Round = r.rec.Round + 1
	if err := ledger.StoreRound(ctx, r.cfg.Store, r.id, next); err != nil {
		return next, err
	}
	if err := r.save(ctx, func(c *manifest.Campaign) { c.Round = max(c.Round, next.Round) }); err != nil {
		return next, err
	}
	l.Begin(next)
	return next, nil
}

// restore reopens the items of all stored rounds, and restores the rounds of pending commands.
func (r *rounds) restore(ctx context.Context, l *ledger.Ledger) error {
	r.retries = map[string]ledger.Round{}
	for old, err := range ledger.Rounds(ctx, r.cfg.Store, r.id) {
		if err != nil {
			return err
		}
		l.Begin(old)
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
