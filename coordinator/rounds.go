package coordinator

import (
	"context"

	"ddiff/internal/coordinator/ledger"
	"ddiff/internal/record"
)

// rounds makes items of a campaign pending again, in rounds.
type rounds struct {
	*campaign
	retries map[string]int // numbers of items by the key of the command
	unsent  ledger.Round   // the last one of a command, which an earlier runner may have stored and not published
}

// start gives a round its number, stores it, counts it in the record, and reopens its items in the ledger. If a
// coordinator dies after it has stored the round, the next one restores it. The items are published after that.
func (r *rounds) start(ctx context.Context, l *ledger.Ledger, next ledger.Round) (ledger.Round, error) {
	next.Round = r.rec.Round + 1
	if err := ledger.StoreRound(ctx, r.cfg.Store, r.id, next); err != nil {
		return next, err
	}
	if err := r.save(ctx, func(c *record.Campaign) { c.Round = max(c.Round, next.Round) }); err != nil {
		return next, err
	}
	l.Begin(next)
	if next.Command != "" {
		r.retries[next.Command] = len(next.Items)
	}
	return next, nil
}

// restore reopens the items of all stored rounds, and knows those of commands, which may be repeated.
func (r *rounds) restore(ctx context.Context, l *ledger.Ledger) error {
	r.retries, r.unsent = map[string]int{}, ledger.Round{}
	for old, err := range ledger.Rounds(ctx, r.cfg.Store, r.id) {
		if err != nil {
			return err
		}
		l.Begin(old)
		if old.Command != "" {
			r.retries[old.Command], r.unsent = len(old.Items), old
		}
		if old.Round > r.rec.Round {
			if err := r.save(ctx, func(c *record.Campaign) { c.Round = max(c.Round, old.Round) }); err != nil {
				return err
			}
		}
	}
	return nil
}
