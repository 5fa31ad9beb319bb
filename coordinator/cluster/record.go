package cluster

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

// Read gives a campaign's record. It returns queue.ErrNoRecord when there is none.
func Read(ctx context.Context, b *queue.Board, id string) (*manifest.Campaign, error) {
	c, _, err := read(ctx, b, id)
	return c, err
}

func read(ctx context.Context, b *queue.Board, id string) (*manifest.Campaign, uint64, error) {
	data, revision, err := b.Get(ctx, manifest.KeyCampaignPrefix+id)
	if err != nil {
		return nil, 0, fmt.Errorf("read campaign %s: %w", id, err)
	}
	c, err := parse(data)
	if err != nil {
		return nil, 0, fmt.Errorf("read campaign %s: %w", id, err)
	}
	return c, revision, nil
}

func parse(data []byte) (*manifest.Campaign, error) {
	var c manifest.Campaign
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, err
	}
	return &c, c.Validate()
}

// Change reads a campaign's record, lets change edit it, and writes it back, again and again
// until nobody else wrote in between. An error of change ends it, and nothing is written;
// errSame ends it without an error.
func Change(ctx context.Context, b *queue.Board, id string, change func(c *manifest.Campaign) error) (*manifest.Campaign, error) {
	c, _, err := swap(ctx, b, id, change)
	return c, err
}

// swap is Change, which also gives the record's revision.
func swap(ctx context.Context, b *queue.Board, id string, change func(c *manifest.Campaign) error) (*manifest.Campaign, uint64, error) {
	for {
		c, revision, err := read(ctx, b, id)
		if err != nil {
			return nil, 0, err
		}
		if err := change(c); errors.Is(err, errSame) {
			return c, revision, nil
		} else if err != nil {
			return nil, 0, fmt.Errorf("change campaign %s: %w", id, err)
		}
		data, err := json.Marshal(c)
		if err != nil {
			return nil, 0, fmt.Errorf("change campaign %s: %w", id, err)
		}
		revision, err = b.Update(ctx, manifest.KeyCampaignPrefix+id, data, revision)
		if errors.Is(err, queue.ErrConflict) {
			continue
		}
		if err != nil {
			return nil, 0, fmt.Errorf("change campaign %s: %w", id, err)
		}
		return c, revision, nil
	}
}

// errSame: the record is as it should be already.
var errSame = errors.New("nothing to change")

// recordKey is where storage has a campaign's record.
func recordKey(id string) string { return "campaigns/" + id + "/campaign.json" }

// mirror keeps the record in storage, for the case that the board is lost.
func mirror(ctx context.Context, s storage.Store, c *manifest.Campaign) error {
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return fmt.Errorf("keep the record of campaign %s: %w", c.ID, err)
	}
	if err := s.Put(ctx, recordKey(c.ID), append(data, '\n')); err != nil {
		return fmt.Errorf("keep the record of campaign %s: %w", c.ID, err)
	}
	return nil
}

// recall puts the campaigns that storage has and the board has not back on the board. How far
// they were published is not known any more: the ledger finds out.
func (s *Service) recall(ctx context.Context) error {
	for info, err := range s.cfg.Store.List(ctx, "campaigns/") {
		if err != nil {
			return fmt.Errorf("look for campaigns in storage: %w", err)
		}
		if !strings.HasSuffix(info.Key, "/campaign.json") {
			continue
		}
		data, err := s.cfg.Store.Get(ctx, info.Key)
		if err != nil {
			return fmt.Errorf("look for campaigns in storage: %w", err)
		}
		c, err := parse(data)
		if err != nil || info.Key != recordKey(c.ID) {
			s.cfg.Logger.Warn("passed over a damaged campaign record", "key", info.Key, "reason", err)
			continue
		}
		_, err = s.cfg.Board.Create(ctx, manifest.KeyCampaignPrefix+c.ID, data)
		if errors.Is(err, queue.ErrRecordExists) {
			continue
		}
		if err != nil {
			return fmt.Errorf("put campaign %s back on the board: %w", c.ID, err)
		}
		s.cfg.Logger.Warn("put a campaign back on the board, from storage", "campaign", c.ID, "phase", c.Phase)
	}
	return nil
}
