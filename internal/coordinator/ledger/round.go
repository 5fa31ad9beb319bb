package ledger

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"ddiff/internal/record"
	"ddiff/storage"
)

// Round is a stored list of identities that became pending again. Outcomes of earlier rounds do not count for them.
type Round struct {
	Schema int      `json:"schema"`
	Round  int      `json:"round"`
	Items  []string `json:"items"`
	// Command is the id of the command that retries the items.
	Command string `json:"command,omitempty"`
	// Missing means that the items were done and their results are not in storage.
	Missing bool `json:"gone,omitempty"`
}

// RoundPrefix is the common prefix of the keys of a campaign's rounds.
func RoundPrefix(campaign string) string { return "campaigns/" + campaign + "/rounds/" }

// StoreRound stores a round. It returns storage.ErrExists if the store has one with its number.
func StoreRound(ctx context.Context, s storage.Store, campaign string, r Round) error {
	r.Schema = record.Schema
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	if err := json.NewEncoder(zip).Encode(r); err != nil {
		return err
	}
	if err := zip.Close(); err != nil {
		return err
	}
	key := fmt.Sprintf("%s%06d.json.gz", RoundPrefix(campaign), r.Round)
	if err := s.Create(ctx, key, out.Bytes()); err != nil {
		return fmt.Errorf("store round %d: %w", r.Round, err)
	}
	return nil
}

// Rounds yields the stored rounds of a campaign in order.
func Rounds(ctx context.Context, s storage.Store, campaign string) iter.Seq2[Round, error] {
	return storage.Each(ctx, s, RoundPrefix(campaign), func(ctx context.Context, info storage.Info) (Round, error) { return readRound(ctx, s, info.Key) })
}

func readRound(ctx context.Context, s storage.Store, key string) (r Round, err error) {
	data, err := s.Get(ctx, key)
	if err != nil {
		return r, fmt.Errorf("read round: %w", err)
	}
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err == nil {
		err = json.NewDecoder(zip).Decode(&r)
	}
	if err != nil {
		return r, fmt.Errorf("read round %s: %w", key, err)
	}
	return r, nil
}

// Begin makes the items of a round pending.
func (l *Ledger) Begin(r Round) {
	for _, id := range r.Items {
		if r.Missing {
			l.MarkMissing(id, r.Round)
		} else {
			l.Reopen(id, r.Round)
		}
	}
}
