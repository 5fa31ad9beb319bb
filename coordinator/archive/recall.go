package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"ddiff/coordinator/board"
	"ddiff/coordinator/index"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/storage"
)

// recall returns an archived campaign to the board. It is idempotent, and returns storage.ErrNotFound if there is no such
// campaign.
func (a *Archiver) recall(ctx context.Context, id string) error {
	_, err := board.Read(ctx, a.cfg.Board, id)
	if errors.Is(err, queue.ErrNoRecord) {
		return a.restore(ctx, id)
	}
	return err
}

// restore creates the record of a campaign on the board from its copy in the store. The number of published windows in a copy may be
// out of date; the ledger corrects it.
func (a *Archiver) restore(ctx context.Context, id string) error {
	newest, err := a.x.Newest(ctx, id)
	if err != nil {
		return err
	}
	if newest.State == index.Deleting {
		return index.ErrDeleting
	}
	c, err := board.Load(ctx, a.cfg.Store, id)
	if err != nil {
		return err
	}
	buried, err := a.x.Buried(ctx, c)
	if err == nil && buried { // a coordinator that was paused has stored the copy after the deletion
		err = storage.ErrNotFound
	}
	if err != nil {
		return err
	}
	if err := a.enterOpen(ctx, c); err != nil {
		return err
	}
	level := slog.LevelWarn // the board has lost the record
	if newest.State == index.Archived {
		level, c.Recalled = slog.LevelInfo, a.cfg.Now().UTC()
	}
	data, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("restore campaign %s: %w", id, err)
	}
	_, err = a.cfg.Board.Create(ctx, manifest.KeyCampaignPrefix+id, data)
	if err != nil && !errors.Is(err, queue.ErrRecordExists) { // submitted again meanwhile
		return fmt.Errorf("restore campaign %s: %w", id, err)
	}
	a.cfg.Logger.Log(ctx, level, "restored a campaign from storage", "campaign", id, "phase", c.Phase)
	return a.restoreStatus(ctx, c)
}

// restoreStatus writes the status at the end of a campaign that is back on the board.
func (a *Archiver) restoreStatus(ctx context.Context, c *manifest.Campaign) error {
	if c.Last == nil {
		return nil
	}
	data, err := json.Marshal(c.Last)
	if err != nil {
		return fmt.Errorf("restore the status of campaign %s: %w", c.ID, err)
	}
	return a.cfg.Board.Put(ctx, manifest.KeyStatusPrefix+c.ID, data)
}

// Admit enters a submitted campaign into the index before anything of it is stored, and removes the messages of a deleted campaign with
// its id. If the campaign is in the archive, the submission has no effect: adopt writes the archived record to the board. The error is
// index.ErrDeleting while the campaign's data are deleted.
func (a *Archiver) Admit(ctx context.Context, c *manifest.Campaign, adopt func(archived *manifest.Campaign) error) error {
	newest, err := a.x.Newest(ctx, c.ID)
	if err != nil {
		return err
	}
	if newest.State != index.Archived {
		if err := a.enterOpen(ctx, c); err != nil {
			return err
		}
		q, err := a.cfg.Inspect(ctx, c.ID)
		if err != nil {
			return err
		}
		return q.Remove(ctx)
	}
	archived, err := board.Load(ctx, a.cfg.Store, c.ID)
	if err != nil {
		return err
	}
	archived.Recalled = a.cfg.Now().UTC()
	if err := adopt(archived); err != nil {
		return err
	}
	if err := a.restoreStatus(ctx, archived); err != nil {
		return err
	}
	return a.enterOpen(ctx, archived)
}
