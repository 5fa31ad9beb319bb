package archive

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"ddiff/coordinator/board"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/storage"
)

// Reconcile compares a record of the board with the store. A board that was restored from a backup has older records: then the copy in
// the store replaces the record, and the record of a deleted campaign is removed. An older copy in the store is replaced. It returns the record that the board has now with its
// revision, c and 0 if that is c, and nil if the campaign was deleted.
func (a *Archiver) Reconcile(ctx context.Context, c *manifest.Campaign) (now *manifest.Campaign, revision uint64, err error) {
	now, revision, err = a.reconcile(ctx, c)
	if err != nil {
		return nil, 0, fmt.Errorf("compare the record of campaign %s with the store: %w", c.ID, err)
	}
	return now, revision, nil
}

// errMissing: the store has no record of a campaign, and had one. If it says so again, the bucket was lost or is older than the board, which
// counts then.
var errMissing = errors.New("the store does not return the record that it had; looks again")

// missesAgain notes whether the store misses the record of a campaign, and reports whether it did at the last look too.
func (a *Archiver) missesAgain(id string, missing bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	again := missing && a.missed[id]
	if delete(a.missed, id); missing && !again {
		a.missed[id] = true
	}
	return again
}

func (a *Archiver) reconcile(ctx context.Context, c *manifest.Campaign) (*manifest.Campaign, uint64, error) {
	stored, err := board.Load(ctx, a.cfg.Store, c.ID)
	missing := errors.Is(err, storage.ErrNotFound) && c.Stored > 0
	doubted := missing != a.missesAgain(c.ID, missing)
	if errors.Is(err, storage.ErrNotFound) || errors.Is(err, board.ErrDamaged) {
		stored, err = nil, nil
	}
	if err != nil {
		return nil, 0, err
	}
	older := func(c *manifest.Campaign) bool {
		return stored != nil && stored.Submitted.Equal(c.Submitted) && c.Stored < stored.Stored
	}
	if stored == nil || !stored.Submitted.Equal(c.Submitted) {
		buried, err := a.x.Buried(ctx, c)
		if err == nil && !buried && doubted {
			err = errMissing
		}
		if err != nil || !buried {
			return c, 0, err
		}
		submitted := c.Submitted
		older = func(c *manifest.Campaign) bool { return c.Submitted.Equal(submitted) }
	}
	if !older(c) {
		if stored != nil && stored.Submitted.Equal(c.Submitted) && stored.Stored < c.Stored { // S3 has executed an earlier write late
			err = board.Store(ctx, a.cfg.Store, c)
		}
		return c, 0, err
	}
	if stored == nil {
		return nil, 0, a.removeDeleted(ctx, c)
	}
	now, revision, err := board.UpdateRevision(ctx, a.cfg.Board, c.ID, func(c *manifest.Campaign) error {
		if !older(c) {
			return board.ErrUnchanged
		}
		if !c.Submitted.Equal(stored.Submitted) { // the requests are those of a deleted campaign with this id
			*c = *stored
			return nil
		}
		*c = withRequests(stored, c)
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	a.cfg.Logger.Warn("the board had an older record of a campaign than the store, which counts", "campaign", c.ID, "phase", now.Phase)
	if board.Active(now) {
		return now, revision, nil
	}
	return now, revision, errors.Join(a.restoreStatus(ctx, now), a.clearQueue(ctx, c.ID, (*queue.Queue).Drop))
}

// withRequests returns the stored record with what users have written to the board since. A crash between the two writes of a change leaves the
// store ahead of a board that is no backup.
func withRequests(stored, c *manifest.Campaign) manifest.Campaign {
	out := *stored
	if c.Asked <= stored.Asked {
		return out
	}
	out.Wanted, out.Weight, out.Priority, out.Spec.Budget = c.Wanted, c.Weight, c.Priority, c.Spec.Budget
	out.Asked, out.Asks = c.Asked, c.Asks
	out.Commands = slices.DeleteFunc(slices.Clone(c.Commands), func(command manifest.Command) bool {
		return slices.ContainsFunc(stored.Answered, func(a manifest.Answer) bool { return a.ID == command.ID })
	})
	return out
}

// removeDeleted removes the record of a deleted campaign, and its messages, from a board that was restored.
func (a *Archiver) removeDeleted(ctx context.Context, c *manifest.Campaign) error {
	a.cfg.Logger.Warn("the board had the record of a deleted campaign", "campaign", c.ID)
	now, revision, err := board.ReadRevision(ctx, a.cfg.Board, c.ID)
	if errors.Is(err, queue.ErrNoRecord) || err == nil && !now.Submitted.Equal(c.Submitted) {
		return nil
	}
	if err == nil {
		err = a.clearQueue(ctx, c.ID, (*queue.Queue).Remove)
	}
	if err == nil {
		err = a.cfg.Board.Delete(ctx, manifest.KeyStatusPrefix+c.ID)
	}
	if err != nil {
		return err
	}
	return a.cfg.Board.DeleteAt(ctx, manifest.KeyCampaignPrefix+c.ID, revision)
}

// clearQueue applies a method to the queue of a campaign.
func (a *Archiver) clearQueue(ctx context.Context, id string, clear func(*queue.Queue, context.Context) error) error {
	q, err := a.cfg.Inspect(ctx, id)
	if err != nil {
		return err
	}
	return clear(q, ctx)
}

// restoreLost restores the open campaigns of the index that are not among those of the board.
func (a *Archiver) restoreLost(ctx context.Context, onBoard map[string]queue.Change) error {
	a.mu.Lock()
	open := slices.Collect(maps.Keys(a.open))
	a.mu.Unlock()
	var errs error
	for _, id := range open {
		if _, found := onBoard[manifest.KeyCampaignPrefix+id]; found {
			continue
		}
		a.setOpen(id, false) // a campaign that is back enters again
		_, err := board.Read(ctx, a.cfg.Board, id)
		if !errors.Is(err, queue.ErrNoRecord) {
			continue // a listing may miss a record that is replaced meanwhile
		}
		if err := a.restoreOpen(ctx, id); err != nil {
			a.setOpen(id, true)
			errs = errors.Join(errs, err)
		}
	}
	return errs
}
