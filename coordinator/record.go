package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/storage"
)

// Read returns a campaign's record. It returns queue.ErrNoRecord when there is none.
func Read(ctx context.Context, b *queue.Board, id string) (*manifest.Campaign, error) {
	c, _, err := readRecord(ctx, b, id)
	return c, err
}

func readRecord(ctx context.Context, b *queue.Board, id string) (*manifest.Campaign, uint64, error) {
	data, revision, err := b.Get(ctx, manifest.KeyCampaignPrefix+id)
	if err != nil {
		return nil, 0, fmt.Errorf("read campaign %s: %w", id, err)
	}
	c, err := parseRecord(data)
	if err != nil {
		return nil, 0, fmt.Errorf("read campaign %s: %w", id, err)
	}
	return c, revision, nil
}

func parseRecord(data []byte) (*manifest.Campaign, error) {
	var c manifest.Campaign
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, err
	}
	return &c, c.Validate()
}

// Update applies change to a campaign's record by compare-and-swap, and repeats it after a conflict. If change returns
// an error, Update writes nothing and returns that error.
func Update(ctx context.Context, b *queue.Board, id string, change func(c *manifest.Campaign) error) (*manifest.Campaign, error) {
	c, _, err := updateRecord(ctx, b, id, change)
	return c, err
}

// updateRecord is Update that also returns the record's revision. If change returns errUnchanged, it writes nothing and
// returns no error.
func updateRecord(ctx context.Context, b *queue.Board, id string, change func(c *manifest.Campaign) error) (*manifest.Campaign, uint64, error) {
	for {
		c, revision, err := readRecord(ctx, b, id)
		if err != nil {
			return nil, 0, err
		}
		if err := change(c); errors.Is(err, errUnchanged) {
			return c, revision, nil
		} else if err != nil {
			return nil, 0, fmt.Errorf("update campaign %s: %w", id, err)
		}
		data, err := json.Marshal(c)
		if err != nil {
			return nil, 0, fmt.Errorf("update campaign %s: %w", id, err)
		}
		revision, err = b.Update(ctx, manifest.KeyCampaignPrefix+id, data, revision)
		if errors.Is(err, queue.ErrConflict) {
			continue
		}
		if err != nil {
			return nil, 0, fmt.Errorf("update campaign %s: %w", id, err)
		}
		return c, revision, nil
	}
}

// errUnchanged: the record needs no change.
var errUnchanged = errors.New("nothing to change")

// recordKey is the storage key of a campaign's record.
func recordKey(id string) string { return "campaigns/" + id + "/campaign.json" }

// storeRecord copies the record into the store, in case the board is lost.
func storeRecord(ctx context.Context, s storage.Store, c *manifest.Campaign) error {
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return fmt.Errorf("store the record of campaign %s: %w", c.ID, err)
	}
	if err := s.Put(ctx, recordKey(c.ID), append(data, '\n')); err != nil {
		return fmt.Errorf("store the record of campaign %s: %w", c.ID, err)
	}
	return nil
}

// restoreRecords writes the stored records to the board that the board does not have. The number of published windows
// in them may be out of date; the ledger corrects it.
func (s *Service) restoreRecords(ctx context.Context) error {
	for info, err := range s.cfg.Store.List(ctx, "campaigns/") {
		if err != nil {
			return fmt.Errorf("restore campaigns from storage: %w", err)
		}
		if !strings.HasSuffix(info.Key, "/campaign.json") {
			continue
		}
		data, err := s.cfg.Store.Get(ctx, info.Key)
		if err != nil {
			return fmt.Errorf("restore campaigns from storage: %w", err)
		}
		c, err := parseRecord(data)
		if err != nil || info.Key != recordKey(c.ID) {
			s.cfg.Logger.Warn("skipped a damaged campaign record", "key", info.Key, "reason", err)
			continue
		}
		_, err = s.cfg.Board.Create(ctx, manifest.KeyCampaignPrefix+c.ID, data)
		if errors.Is(err, queue.ErrRecordExists) {
			continue
		}
		if err != nil {
			return fmt.Errorf("restore campaign %s: %w", c.ID, err)
		}
		s.cfg.Logger.Warn("restored a campaign from storage", "campaign", c.ID, "phase", c.Phase)
	}
	return nil
}
