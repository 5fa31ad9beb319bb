package archive

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/index"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/storage"
)

// ErrBusy: the campaign has ended, and its runner has not, or it moves between board and archive.
var ErrBusy = errors.New("the campaign is about to end")

// List lists the archived campaigns of a store in the order of their ids, with their phase, priority, weight, counts and times
// to the second; the other fields are empty.
func List(ctx context.Context, s storage.Store) ([]record.CampaignStatus, error) {
	entries, err := index.New(s).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("list archived campaigns: %w", err)
	}
	var all []record.CampaignStatus
	for _, id := range slices.Sorted(maps.Keys(entries)) {
		e := entries[id]
		if e.State != index.Archived {
			continue
		}
		all = append(all, record.CampaignStatus{
			Campaign: &record.Campaign{
				Schema: record.Schema, ID: e.ID, Priority: e.Row.Priority, Weight: e.Row.Weight, Submitted: e.Row.Submitted,
				Phase: e.Row.Phase, Finished: e.Row.Finished,
			},
			Status: record.Status{
				ID: e.ID, Phase: e.Row.Phase, Counts: e.Row.Counts, At: e.Row.Finished, Seconds: e.Row.Seconds, Cost: e.Row.Cost,
			},
			Archived: e.Row.Archived,
		})
	}
	return all, nil
}

// Submit enters a submitted campaign into the index, removes the messages of a deleted campaign with its id, and stores its record. If there is
// a campaign with the id, the submission has no effect: Submit returns that one, and created is false; back is the time if it has just come back from
// the archive. The error is index.ErrDeleting while the campaign's data are deleted.
func (a *Archiver) Submit(ctx context.Context, c *record.Campaign) (now *record.Campaign, created bool, back time.Time, err error) {
	err = a.inTurn(c.ID, func() error {
		newest, err := a.x.Newest(ctx, c.ID)
		if err == nil {
			now, back, err = a.recall(ctx, newest)
		}
		if errors.Is(err, errBuried) {
			err = cmp.Or(a.cfg.Store.Delete(ctx, board.StoredKey(c.ID)), err)
		}
		if !errors.Is(err, storage.ErrNotFound) {
			return err
		}
		if err := a.enterOpen(ctx, c); err != nil {
			return err
		}
		if err := a.clearQueue(ctx, c.ID, (*queue.Queue).Remove); err != nil {
			return err
		}
		a.cfg.Writer.Forget(c.ID)
		now, created = c, true
		return a.cfg.Writer.Create(ctx, c)
	})
	if err != nil {
		return nil, false, back, fmt.Errorf("submit campaign %s: %w", c.ID, err)
	}
	return now, created, back, nil
}

// errBuried: a coordinator that was suspended has stored the record of a deleted campaign late.
var errBuried = fmt.Errorf("the campaign was deleted: %w", storage.ErrNotFound)

// Recall calls act with the record of a campaign, while the campaign is on the board, to which it comes back from the archive. Before that it
// calls may with the record. It returns storage.ErrNotFound if there is no such campaign.
func (a *Archiver) Recall(ctx context.Context, id string, may, act func(c *record.Campaign) error) error {
	return a.inTurn(id, func() error {
		c, err := board.Read(ctx, a.cfg.Board, id)
		onBoard := err == nil && a.cfg.Writer.Current(c)
		if !onBoard {
			c, err = board.Load(ctx, a.cfg.Store, id)
		}
		if err == nil {
			err = may(c)
		}
		if err == nil && !onBoard {
			var newest index.Entry
			if newest, err = a.x.Newest(ctx, id); err == nil {
				c, _, err = a.recall(ctx, newest)
			}
		}
		if err != nil {
			return err
		}
		return act(c)
	})
}

// recall gives the board the record of a campaign that the store has.
func (a *Archiver) recall(ctx context.Context, newest index.Entry) (c *record.Campaign, back time.Time, err error) {
	id := newest.ID
	if newest.State == index.Deleting {
		return nil, back, index.ErrDeleting
	}
	if c, err = a.cfg.Writer.Newest(ctx, id); err != nil {
		return nil, back, err
	}
	buried, err := a.x.Buried(ctx, c)
	if err == nil && buried {
		err = errBuried
	}
	if err == nil {
		err = a.enterOpen(ctx, c)
	}
	if err != nil {
		return nil, back, err
	}
	_, missing := board.Read(ctx, a.cfg.Board, id)
	if newest.State == index.Archived {
		back = a.cfg.Now().UTC()
		a.mu.Lock()
		a.back[id] = back
		a.mu.Unlock()
	}
	if err := a.cfg.Writer.Replace(ctx, c); err != nil || !errors.Is(missing, queue.ErrNoRecord) {
		return c, back, err
	}
	level := slog.LevelWarn // the board has lost the record
	if !back.IsZero() {
		level = slog.LevelInfo
	}
	a.cfg.Logger.Log(ctx, level, "restored a campaign from storage", "campaign", id, "phase", c.Phase)
	return c, back, a.restoreStatus(ctx, c)
}

// restore is recall of a campaign that the board lacks.
func (a *Archiver) restore(ctx context.Context, newest index.Entry) error {
	_, _, err := a.recall(ctx, newest)
	return err
}

// restoreStatus writes the status at the end of a campaign that is back on the board.
func (a *Archiver) restoreStatus(ctx context.Context, c *record.Campaign) error {
	if c.Last == nil {
		return nil
	}
	data, err := json.Marshal(c.Last)
	if err != nil {
		return fmt.Errorf("restore the status of campaign %s: %w", c.ID, err)
	}
	return a.cfg.Board.Put(ctx, record.KeyStatusPrefix+c.ID, data)
}

// Archive moves a campaign that has ended to the archive at once, for its deletion, and removes its messages. It does nothing for an archived
// campaign. It returns queue.ErrNoRecord if there is no such campaign, ErrBusy, and ErrRefused if the campaign has not ended.
func (a *Archiver) Archive(ctx context.Context, id string) error {
	return a.inTurn(id, func() error { return a.archiveNow(ctx, id) })
}

func (a *Archiver) archiveNow(ctx context.Context, id string) error {
	c, revision, err := board.ReadRevision(ctx, a.cfg.Board, id)
	if errors.Is(err, queue.ErrNoRecord) {
		newest, e := a.x.Newest(ctx, id)
		if e != nil {
			return e
		}
		switch newest.State {
		case index.Archived, index.Deleting:
			return nil
		case index.Open: // a recall was interrupted
			return errors.Join(ErrBusy, a.restore(ctx, newest))
		}
	}
	switch {
	case err != nil:
		return err
	case board.Active(c):
		return fmt.Errorf("%w: the campaign has not ended, its phase is %s; cancel it first", board.ErrRefused, c.Phase)
	case a.cfg.Running(id):
		return ErrBusy
	case !a.cfg.Writer.Current(c): // the board may be older than the store
		return errors.Join(ErrBusy, a.repair(ctx, id))
	}
	if err := a.archive(ctx, c, revision); err != nil {
		return err
	}
	if _, _, err := a.cfg.Board.Get(ctx, record.KeyCampaignPrefix+id); !errors.Is(err, queue.ErrNoRecord) {
		return errors.Join(ErrBusy, err) // resumed meanwhile
	}
	return a.clearQueue(ctx, id, (*queue.Queue).Remove)
}

func (a *Archiver) repair(ctx context.Context, id string) error {
	_, err := a.cfg.Writer.Repair(ctx, id)
	return err
}

// errMissing: the store has no record of a campaign that the board has. If it says so again, the bucket was lost, and the board counts.
var errMissing = errors.New("the store does not return the record that it had; looks again")

// missesAgain notes whether the store misses the record of a campaign, and reports whether it did a while ago too.
func (a *Archiver) missesAgain(id string, missing bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	since, before := a.missed[id]
	if !missing {
		delete(a.missed, id)
	} else if !before {
		a.missed[id] = time.Now()
	}
	return missing && before && time.Since(since) >= a.cfg.Restart/2
}

// Reconcile compares a record of the board with the store, which counts: a board that was restored from a backup has older records, and those of
// deleted campaigns, which are removed. It returns the record that the board has now, and nil if the campaign was deleted.
func (a *Archiver) Reconcile(ctx context.Context, c *record.Campaign) (*record.Campaign, error) {
	if a.cfg.Writer.Current(c) {
		return c, nil
	}
	now, err := a.reconcile(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("compare the record of campaign %s with the store: %w", c.ID, err)
	}
	return now, nil
}

func (a *Archiver) reconcile(ctx context.Context, c *record.Campaign) (*record.Campaign, error) {
	stored, err := a.cfg.Writer.Newest(ctx, c.ID)
	missing := errors.Is(err, storage.ErrNotFound)
	again := a.missesAgain(c.ID, missing)
	switch {
	case errors.Is(err, board.ErrDamaged):
		a.cfg.Logger.Warn("the stored record of a campaign is damaged; that of the board counts", "campaign", c.ID, "reason", err)
		a.cfg.Writer.Trust(c)
		return c, nil
	case err != nil && !missing:
		return nil, err
	}
	if missing || !stored.Submitted.Equal(c.Submitted) {
		buried, err := a.x.Buried(ctx, c)
		switch {
		case err != nil:
			return nil, err
		case buried && missing:
			return nil, a.removeDeleted(ctx, c)
		case missing && !again:
			return nil, errMissing
		case missing:
			a.cfg.Logger.Warn("the store has lost the record of a campaign; that of the board counts", "campaign", c.ID)
			return c, a.cfg.Writer.Create(ctx, c)
		}
	}
	if err := a.cfg.Writer.Replace(ctx, stored); err != nil || stored.Number == c.Number && stored.Submitted.Equal(c.Submitted) {
		return stored, err
	}
	a.cfg.Logger.Warn("the board had an older record of a campaign than the store, which counts", "campaign", c.ID, "phase", stored.Phase)
	if board.Active(stored) {
		return stored, nil
	}
	return stored, errors.Join(a.restoreStatus(ctx, stored), a.clearQueue(ctx, c.ID, (*queue.Queue).Drop))
}

// removeDeleted removes the record of a deleted campaign, and its messages, from a board that was restored.
func (a *Archiver) removeDeleted(ctx context.Context, c *record.Campaign) error {
	a.cfg.Logger.Warn("the board had the record of a deleted campaign", "campaign", c.ID)
	now, revision, err := board.ReadRevision(ctx, a.cfg.Board, c.ID)
	if errors.Is(err, queue.ErrNoRecord) || err == nil && !now.Submitted.Equal(c.Submitted) {
		return nil
	}
	if err == nil {
		err = a.clearQueue(ctx, c.ID, (*queue.Queue).Remove)
	}
	if err == nil {
		err = a.cfg.Board.Delete(ctx, record.KeyStatusPrefix+c.ID)
	}
	if err != nil {
		return err
	}
	return a.cfg.Board.DeleteAt(ctx, record.KeyCampaignPrefix+c.ID, revision)
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
		if _, found := onBoard[record.KeyCampaignPrefix+id]; found {
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
