package archive

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"ddiff/coordinator/board"
	"ddiff/coordinator/index"
	"ddiff/manifest"
	"ddiff/storage"
)

// load restores the campaigns that the index has as open and the board has lost. It marks the store as that of a cluster.
func (a *Archiver) load(ctx context.Context) error {
	entries, err := a.x.All(ctx)
	if err != nil {
		return err
	}
	_, err = a.cfg.Store.Stat(ctx, index.KeyComplete)
	if errors.Is(err, storage.ErrNotFound) {
		err = a.cfg.Store.Put(ctx, index.KeyComplete, nil)
	}
	if err != nil {
		return fmt.Errorf("mark the index of campaigns: %w", err)
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
