package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/storage"
)

// recallParallel is the number of messages that a recall publishes concurrently.
const recallParallel = 64

// recall returns an archived campaign to the board. It is idempotent, and returns storage.ErrNotFound if there is no such
// campaign.
func (a *archiver) recall(ctx context.Context, id string) error {
	_, _, err := a.s.cfg.Board.Get(ctx, manifest.KeyCampaignPrefix+id)
	if err == nil || !errors.Is(err, queue.ErrNoRecord) {
		return err
	}
	return a.restore(ctx, id)
}

// restore creates the record of a campaign on the board, from its archive, or from the copy of the record in the store if
// that is newer. The number of published windows in a copy may be out of date; the ledger corrects it.
//
// The record comes last. A crash before leaves messages and a status, which cleanUp removes.
func (a *archiver) restore(ctx context.Context, id string) error {
	a.work.Lock()
	defer a.work.Unlock()
	newest, err := a.x.of(ctx, id)
	if err != nil {
		return err
	}
	if newest.state == indexDeleting {
		return errDeleting
	}
	stored, storedErr := loadRecord(ctx, a.s.cfg.Store, id)
	file, err := loadArchive(ctx, a.s.cfg.Store, id)
	for _, err := range []error{storedErr, err} {
		if err != nil && !errors.Is(err, storage.ErrNotFound) && !errors.Is(err, errDamagedRecord) {
			return err // an outage
		}
	}
	c := stored
	switch {
	case err == nil && (newest.state == indexArchived || storedErr != nil || sameEnd(stored, &file.Campaign)):
		if err := a.republish(ctx, file); err != nil {
			return fmt.Errorf("restore campaign %s: %w", id, err)
		}
		c = &file.Campaign
		c.Recalled = a.s.cfg.Now().UTC()
	case newest.state == indexArchived:
		return err
	case storedErr != nil:
		return storedErr
	}
	if err := a.x.open(ctx, c); err != nil {
		return err
	}
	data, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("restore campaign %s: %w", id, err)
	}
	_, err = a.s.cfg.Board.Create(ctx, manifest.KeyCampaignPrefix+id, data)
	if err != nil && !errors.Is(err, queue.ErrRecordExists) { // submitted again meanwhile
		return fmt.Errorf("restore campaign %s: %w", id, err)
	}
	a.s.cfg.Logger.Warn("restored a campaign from storage", "campaign", id, "phase", c.Phase)
	return nil
}

// sameEnd reports whether a record is that of the same end of a campaign as an archived one.
func sameEnd(c, archived *manifest.Campaign) bool {
	return c.Phase == archived.Phase && c.Finished.Equal(archived.Finished)
}

// loadArchive reads the archive of a campaign. It returns storage.ErrNotFound or errDamagedRecord.
func loadArchive(ctx context.Context, s storage.Store, id string) (*archiveFile, error) {
	data, err := s.Get(ctx, archiveKey(id))
	if err != nil {
		return nil, fmt.Errorf("read the archive of campaign %s: %w", id, err)
	}
	file, err := decodeArchive(data)
	if err == nil && file.Campaign.ID != id {
		err = fmt.Errorf("it belongs to campaign %s", file.Campaign.ID)
	}
	if err != nil {
		return nil, fmt.Errorf("read the archive of campaign %s: %w: %w", id, errDamagedRecord, err)
	}
	return file, nil
}

// republish replaces the messages of a campaign with those of its archive, and writes its status.
func (a *archiver) republish(ctx context.Context, file *archiveFile) error {
	id := file.Campaign.ID
	q, err := a.queue(ctx, id)
	if err != nil {
		return err
	}
	if err := q.Remove(ctx); err != nil {
		return err
	}
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(recallParallel)
	for _, f := range file.failures {
		group.Go(func() error {
			data, err := json.Marshal(f)
			if err != nil {
				return err
			}
			return q.PublishResult(inner, f.ID, f.Round, data)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, letter := range file.letters { // in order
		if err := q.PublishDead(ctx, letter); err != nil {
			return err
		}
	}
	data, err := json.Marshal(file.Status)
	if err != nil {
		return err
	}
	return a.s.cfg.Board.Put(ctx, manifest.KeyStatusPrefix+id, data)
}

// admit examines a campaign that was just submitted. If it is in the archive, the submission has no effect: the record
// becomes the archived record. Otherwise the campaign is entered into the index before anything of it is stored.
func (r *runner) admit(ctx context.Context) error {
	if r.s.cfg.run != nil || !isNew(r.rec) {
		return nil
	}
	a := r.s.archive
	a.work.Lock()
	defer a.work.Unlock()
	newest, err := a.x.of(ctx, r.id)
	if err != nil {
		return err
	}
	if newest.state == indexArchived {
		file, err := loadArchive(ctx, r.s.cfg.Store, r.id)
		if err != nil {
			return err
		}
		if err := a.republish(ctx, file); err != nil {
			return err
		}
		err = r.save(ctx, func(c *manifest.Campaign) {
			commands := c.Commands
			*c = file.Campaign
			c.Commands, c.Recalled = commands, r.s.cfg.Now().UTC()
		})
		if err != nil {
			return err
		}
	}
	if err := a.x.open(ctx, r.rec); errors.Is(err, errDeleting) {
		return rejection{err}
	} else if err != nil {
		return err
	}
	if !active(r.rec) {
		return errEnded
	}
	return nil
}

// isNew reports whether no coordinator has opened a campaign yet.
func isNew(c *manifest.Campaign) bool { return c.Phase == manifest.PhaseQueued && c.Prior.SHA256 == "" }

// settleRecalled restores the ledger of a campaign that came from the archive: the outcomes of items that are not done
// are in the result stream again, and the results in storage prove the done items.
func (r *runner) settleRecalled(ctx context.Context) error {
	if r.rec.Recalled.IsZero() {
		return nil
	}
	if err := r.catchUp(ctx); err != nil {
		return err
	}
	return r.settleListed(ctx)
}
