package coordinator

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"ddiff/manifest"
)

// round is a stored list of identities that became pending again. Outcomes of earlier rounds do not count for them.
type round struct {
	Schema int      `json:"schema"`
	Round  int      `json:"round"`
	Items  []string `json:"items"`
	// Command is the id of the command that retries the items.
	Command string `json:"command,omitempty"`
	// Missing means that the items were done and their results are not in storage.
	Missing bool `json:"gone,omitempty"`
}

func roundPrefix(campaign string) string { return "campaigns/" + campaign + "/rounds/" }

// startRound gives a round its number, stores it, counts it in the record, and reopens its items in the ledger. If a
// coordinator dies after it has stored the round, the next one restores it. The items are published after that.
func (r *runner) startRound(ctx context.Context, next round) (round, error) {
	next.Schema, next.Round = manifest.RecordSchema, r.rec.Round+1
	if err := r.storeRound(ctx, next); err != nil {
		return next, err
	}
	if err := r.save(ctx, func(c *manifest.Campaign) { c.Round = max(c.Round, next.Round) }); err != nil {
		return next, err
	}
	r.reopen(next)
	return next, nil
}

// reopen makes the items of a round pending in the ledger.
func (r *runner) reopen(next round) {
	for _, id := range next.Items {
		if next.Missing {
			r.ledger.MarkMissing(id, next.Round)
		} else {
			r.ledger.Reopen(id, next.Round)
		}
	}
}

func (r *runner) storeRound(ctx context.Context, next round) error {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	if err := json.NewEncoder(zip).Encode(next); err != nil {
		return err
	}
	if err := zip.Close(); err != nil {
		return err
	}
	key := fmt.Sprintf("%s%06d.json.gz", roundPrefix(r.id), next.Round)
	if err := r.s.cfg.Store.Create(ctx, key, out.Bytes()); err != nil {
		return fmt.Errorf("store round %d: %w", next.Round, err)
	}
	return nil
}

// restoreRounds reopens the items of all stored rounds, and restores the rounds of pending commands.
func (r *runner) restoreRounds(ctx context.Context) error {
	r.retries = map[string]round{}
	for info, err := range r.s.cfg.Store.List(ctx, roundPrefix(r.id)) {
		if err != nil {
			return fmt.Errorf("list rounds: %w", err)
		}
		data, err := r.s.cfg.Store.Get(ctx, info.Key)
		if err != nil {
			return fmt.Errorf("read round: %w", err)
		}
		zip, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return fmt.Errorf("read round %s: %w", info.Key, err)
		}
		var old round
		if err := json.NewDecoder(zip).Decode(&old); err != nil {
			return fmt.Errorf("read round %s: %w", info.Key, err)
		}
		r.reopen(old)
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
