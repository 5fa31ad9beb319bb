// Package board is the client of the cluster's board: it submits, reads, lists and controls campaigns.
//
// The board (a JetStream KV bucket) has one record per campaign, which all writers change by compare-and-swap, one
// status per campaign, and one beat per worker. The store has a copy of each record. The package owns the reading and
// writing of these records; package manifest has their fields. A new verb of users is a function here that changes the
// record with [Update].
package board

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/storage"
)

// Read returns a campaign's record. It returns queue.ErrNoRecord when there is none.
func Read(ctx context.Context, b *queue.Board, id string) (*manifest.Campaign, error) {
	c, _, err := ReadRevision(ctx, b, id)
	return c, err
}

// ReadRevision is Read that also returns the record's revision.
func ReadRevision(ctx context.Context, b *queue.Board, id string) (*manifest.Campaign, uint64, error) {
	c, _, revision, err := read(ctx, b, id)
	return c, revision, err
}

func read(ctx context.Context, b *queue.Board, id string) (c *manifest.Campaign, data []byte, revision uint64, err error) {
	data, revision, err = b.Get(ctx, manifest.KeyCampaignPrefix+id)
	if err == nil {
		c, err = manifest.DecodeCampaign(id, data)
	}
	if err != nil {
		return nil, nil, 0, fmt.Errorf("read campaign %s: %w", id, err)
	}
	return c, data, revision, nil
}

// Update applies change to a campaign's record by compare-and-swap, and repeats it after a conflict. If change returns
// an error, Update writes nothing and returns that error.
func Update(ctx context.Context, b *queue.Board, id string, change func(c *manifest.Campaign) error) (*manifest.Campaign, error) {
	c, _, err := UpdateRevision(ctx, b, id, change)
	return c, err
}

// UpdateRevision is Update that also returns the record's revision. If change returns ErrUnchanged, it writes nothing and
// returns no error.
func UpdateRevision(ctx context.Context, b *queue.Board, id string, change func(c *manifest.Campaign) error) (*manifest.Campaign, uint64, error) {
	return update(ctx, b, id, change, false)
}

// decide is Update for what people ask for. A server that is cut off from the others serves old records for some seconds: an answer
// without a change is therefore confirmed by writing the record as it is.
func decide(ctx context.Context, b *queue.Board, id string, change func(c *manifest.Campaign) error) (*manifest.Campaign, error) {
	c, _, err := update(ctx, b, id, change, true)
	return c, err
}

func update(ctx context.Context, b *queue.Board, id string, change func(c *manifest.Campaign) error, confirm bool) (*manifest.Campaign, uint64, error) {
	for {
		c, data, revision, err := read(ctx, b, id)
		if err != nil {
			return nil, 0, err
		}
		refused := change(c)
		if refused == nil {
			data, err = json.Marshal(c)
		}
		if err == nil && (refused == nil || confirm) {
			revision, err = b.Update(ctx, manifest.KeyCampaignPrefix+id, data, revision)
		}
		switch {
		case errors.Is(err, queue.ErrConflict):
			continue
		case err == nil && (refused == nil || errors.Is(refused, ErrUnchanged)):
			return c, revision, nil
		case err == nil:
			err = refused
		}
		return nil, 0, fmt.Errorf("update campaign %s: %w", id, err)
	}
}

// ErrUnchanged: the record needs no change.
var ErrUnchanged = errors.New("nothing to change")

// StoredKey is the storage key of a campaign's record.
func StoredKey(id string) string { return "campaigns/" + id + "/campaign.json" }

// Store copies the record into the store, in case the board is lost.
func Store(ctx context.Context, s storage.Store, c *manifest.Campaign) error {
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return fmt.Errorf("store the record of campaign %s: %w", c.ID, err)
	}
	if err := s.Put(ctx, StoredKey(c.ID), append(data, '\n')); err != nil {
		return fmt.Errorf("store the record of campaign %s: %w", c.ID, err)
	}
	return nil
}

// ErrDamaged: a stored record cannot be read.
var ErrDamaged = errors.New("damaged record")

// Load reads the record of a campaign from the store. It returns storage.ErrNotFound or [ErrDamaged].
func Load(ctx context.Context, s storage.Store, id string) (*manifest.Campaign, error) {
	data, err := s.Get(ctx, StoredKey(id))
	if err != nil {
		return nil, fmt.Errorf("read the stored record of campaign %s: %w", id, err)
	}
	c, err := manifest.DecodeCampaign(id, data)
	if err != nil {
		return nil, fmt.Errorf("read the stored record of campaign %s: %w: %w", id, ErrDamaged, err)
	}
	return c, nil
}

// Active reports whether a campaign needs a coordinator.
func Active(c *manifest.Campaign) bool {
	switch {
	case len(c.Commands) > 0, !c.Phase.Ended():
		return true
	case c.Phase == manifest.PhaseFinished:
		return false
	case c.Phase == manifest.PhaseRejected && WantsCancel(c), c.RecordedBudget != c.Spec.Budget:
		return true
	}
	return c.Wanted == manifest.WantRun // a cancelled or rejected campaign was resumed
}

// WantsCancel reports whether users have requested the cancellation.
func WantsCancel(c *manifest.Campaign) bool {
	return c.Wanted == manifest.WantCancel || c.Wanted == manifest.WantCancelNow
}

// IsNew reports whether no coordinator has opened a campaign yet.
func IsNew(c *manifest.Campaign) bool {
	return c.Phase == manifest.PhaseQueued && c.Prior.SHA256 == ""
}

// IgnoreConflict drops the error of a record that was changed meanwhile.
func IgnoreConflict(err error) error {
	if errors.Is(err, queue.ErrConflict) {
		return nil
	}
	return err
}
