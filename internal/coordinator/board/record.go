// Package board is the client of the cluster's board, and of the records of campaigns in its store, which the board repeats.
//
// The store decides: it has what was submitted and a numbered, create-only state for each decision since. The board (a JetStream KV bucket) is
// its cache for workers and pages, and has one status per campaign and one beat per worker. The package owns the reading and
// writing of these records; package record has their fields. The leader alone changes records, see [Writer]; people ask it to with [Do].
package board

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/manifest"
	"ddiff/storage"
)

// Read returns a campaign's record of the board. It returns queue.ErrNoRecord when there is none.
func Read(ctx context.Context, b *queue.Board, id string) (*record.Campaign, error) {
	c, _, err := ReadRevision(ctx, b, id)
	return c, err
}

// ReadRevision is Read that also returns the record's revision.
func ReadRevision(ctx context.Context, b *queue.Board, id string) (c *record.Campaign, revision uint64, err error) {
	data, revision, err := b.Get(ctx, record.KeyCampaignPrefix+id)
	if err == nil {
		var version struct{ Schema int }
		if c, err = record.DecodeCampaign(id, data); err != nil && (json.Unmarshal(data, &version) != nil || version.Schema <= record.Schema) {
			err = fmt.Errorf("%w: %w", ErrDamaged, err)
		}
	}
	if err != nil {
		return nil, revision, fmt.Errorf("read campaign %s: %w", id, err)
	}
	return c, revision, nil
}

// ErrUnchanged: the record needs no change.
var ErrUnchanged = errors.New("nothing to change")

// StoredKey is the storage key of what was submitted. It is create-only.
func StoredKey(id string) string { return "campaigns/" + id + "/campaign.json" }

// statePrefix begins the storage keys of the states of a submission.
func statePrefix(id string, submitted time.Time) string {
	return fmt.Sprintf("campaigns/%s/state/%d.", id, submitted.UnixNano())
}

func stateKey(c *record.Campaign) string {
	return fmt.Sprintf("%s%06d.json", statePrefix(c.ID, c.Submitted), c.Number)
}

// state is a decision: a record without what was submitted, but for what may change.
type state struct {
	*record.Campaign
	Spec     *manifest.Spec  `json:"spec,omitempty"` // hides the one of the record
	Pool     string          `json:"pool,omitempty"`
	Deadline string          `json:"deadline,omitempty"`
	Budget   manifest.Budget `json:"budget,omitzero"`
}

// ErrDamaged: a record cannot be read.
var ErrDamaged = errors.New("damaged record")

// Load reads the record of a campaign from the store. It returns storage.ErrNotFound or [ErrDamaged].
func Load(ctx context.Context, s storage.Store, id string) (*record.Campaign, error) {
	c, err := load(ctx, s, id)
	if err != nil {
		return nil, fmt.Errorf("read the stored record of campaign %s: %w", id, err)
	}
	return c, nil
}

func load(ctx context.Context, s storage.Store, id string) (*record.Campaign, error) {
	data, err := s.Get(ctx, StoredKey(id))
	if err != nil {
		return nil, err
	}
	submitted, err := record.DecodeCampaign(id, data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	newest := ""
	for info, err := range s.List(ctx, statePrefix(id, submitted.Submitted)) {
		if err != nil {
			return nil, err
		}
		newest = info.Key
	}
	if newest == "" {
		return submitted, nil
	}
	return loadState(ctx, s, submitted, newest)
}

// loadState reads a state of a submission.
func loadState(ctx context.Context, s storage.Store, submitted *record.Campaign, key string) (*record.Campaign, error) {
	data, err := s.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	c := state{Campaign: &record.Campaign{}}
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, key, err)
	}
	spec := submitted.Spec
	spec.Pool, spec.Deadline, spec.Budget = c.Pool, c.Deadline, c.Budget
	c.Campaign.Spec = spec
	if err := c.Validate(); err != nil || stateKey(c.Campaign) != key {
		return nil, fmt.Errorf("%w: %s: %v", ErrDamaged, key, err) //nolint:errorlint // nil for another number
	}
	return c.Campaign, nil
}

// encodeState is the content of a state.
func encodeState(c *record.Campaign) ([]byte, error) {
	data, err := json.Marshal(state{Campaign: c, Pool: c.Spec.Pool, Deadline: c.Spec.Deadline, Budget: c.Spec.Budget})
	return append(data, '\n'), err
}

// Active reports whether a campaign needs a coordinator.
func Active(c *record.Campaign) bool {
	switch {
	case !c.Phase.Ended():
		return true
	case c.Phase == record.PhaseFinished:
		return false
	case c.Phase == record.PhaseRejected && WantsCancel(c):
		return true
	}
	return c.Wanted == record.WantRun // a cancelled or rejected campaign was resumed
}

// WantsCancel reports whether users have requested the cancellation.
func WantsCancel(c *record.Campaign) bool {
	return c.Wanted == record.WantCancel || c.Wanted == record.WantCancelNow
}
