package archive

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ddiff/coordinator/board"
	"ddiff/coordinator/index"
	"ddiff/manifest"
	"ddiff/storage"
)

// load restores the campaigns that the index has as open and the board has lost. Campaigns of stores without an index are
// entered into it first.
func (a *Archiver) load(ctx context.Context) error {
	entries, err := a.x.All(ctx)
	if err != nil {
		return err
	}
	if err := a.createIndex(ctx, entries); err != nil {
		return err
	}
	there, err := a.cfg.Board.Keys(ctx, manifest.KeyCampaignPrefix)
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(entries)) {
		if entries[id].State != index.Open {
			continue
		}
		if _, found := slices.BinarySearch(there, manifest.KeyCampaignPrefix+id); found {
			a.open[id] = true
			continue
		}
		if err := a.restore(ctx, id); err != nil && !errors.Is(err, storage.ErrNotFound) && !errors.Is(err, index.ErrDeleting) {
			if !errors.Is(err, board.ErrDamaged) {
				return err
			}
			a.cfg.Logger.Warn("cannot restore a campaign", "campaign", id, "reason", err)
		}
	}
	return nil
}

// createIndex enters the campaigns of a store that was used without an index, once.
func (a *Archiver) createIndex(ctx context.Context, entries map[string]index.Entry) error {
	store := a.cfg.Store
	_, err := store.Stat(ctx, index.KeyComplete)
	if err == nil || !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	for info, err := range store.List(ctx, "campaigns/") {
		if err != nil {
			return fmt.Errorf("list campaigns: %w", err)
		}
		id := strings.TrimSuffix(strings.TrimPrefix(info.Key, "campaigns/"), "/campaign.json")
		if info.Key != board.StoredKey(id) || strings.Contains(id, "/") || entries[id].ID != "" {
			continue
		}
		c, err := board.Load(ctx, store, id)
		if err != nil {
			if !errors.Is(err, board.ErrDamaged) {
				return err
			}
			a.cfg.Logger.Warn("skipped a damaged campaign record", "key", info.Key, "reason", err)
			continue
		}
		if err := a.x.Open(ctx, c); err != nil && !errors.Is(err, index.ErrDeleting) {
			return err
		}
		entries[id] = index.Entry{ID: id, State: index.Open}
	}
	if err := store.Put(ctx, index.KeyComplete, nil); err != nil {
		return fmt.Errorf("complete the index of campaigns: %w", err)
	}
	return nil
}
