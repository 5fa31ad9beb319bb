package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"golang.org/x/sync/errgroup"

	"ddiff/coordinator/board"
	"ddiff/coordinator/index"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/storage"
)

// recallParallel is the number of messages that a recall publishes concurrently.
const recallParallel = 64

// recall returns an archived campaign to the board. It is idempotent, and returns storage.ErrNotFound if there is no such
// campaign.
func (a *Archiver) recall(ctx context.Context, id string) error {
	c, err := board.Read(ctx, a.cfg.Board, id)
	switch {
	case errors.Is(err, queue.ErrNoRecord):
		return a.restore(ctx, id)
	case err == nil && c.Restoring > 0:
		return a.completeRestore(ctx, id)
	}
	return err
}

// restore creates the record of a campaign on the board, from its archive, or from the copy of the record in the store if
// that is newer. The number of published windows in a copy may be out of date; the ledger corrects it.
func (a *Archiver) restore(ctx context.Context, id string) error {
	a.work.Lock()
	defer a.work.Unlock()
	newest, err := a.x.Newest(ctx, id)
	if err != nil {
		return err
	}
	if newest.State == index.Deleting {
		return index.ErrDeleting
	}
	stored, storedErr := board.Load(ctx, a.cfg.Store, id)
	file, number, err := loadArchive(ctx, a.cfg.Store, id)
	for _, err := range []error{storedErr, err} {
		if err != nil && !errors.Is(err, storage.ErrNotFound) && !errors.Is(err, board.ErrDamaged) {
			return err // an outage
		}
	}
	c := stored
	switch {
	case err == nil && (newest.State == index.Archived || storedErr != nil || sameEnd(stored, &file.Campaign)):
		c = &file.Campaign
		if newest.State != index.Archived && storedErr == nil {
			c.Wanted = stored.Wanted // requested after the recall
		}
		c.Recalled, c.Restoring = a.cfg.Now().UTC(), number
	case newest.State == index.Archived:
		return err
	case storedErr != nil:
		return storedErr
	}
	if err := a.x.Open(ctx, c); err != nil {
		return err
	}
	data, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("restore campaign %s: %w", id, err)
	}
	_, err = a.cfg.Board.Create(ctx, manifest.KeyCampaignPrefix+id, data)
	if err != nil && !errors.Is(err, queue.ErrRecordExists) { // submitted again meanwhile
		return fmt.Errorf("restore campaign %s: %w", id, err)
	}
	level := slog.LevelWarn // the board has lost the record
	if newest.State == index.Archived {
		level = slog.LevelInfo
	}
	a.cfg.Logger.Log(ctx, level, "restored a campaign from storage", "campaign", id, "phase", c.Phase)
	return a.restoreMessages(ctx, id)
}

// sameEnd reports whether a record is that of the same end of a campaign as an archived one.
func sameEnd(c, archived *manifest.Campaign) bool {
	return c.Phase == archived.Phase && c.Finished.Equal(archived.Finished)
}

// loadArchive reads the newest archive of a campaign. It returns storage.ErrNotFound or board.ErrDamaged.
func loadArchive(ctx context.Context, s storage.Store, id string) (file *archiveFile, number int, err error) {
	number, err = index.New(s).NewestArchive(ctx, id)
	if err == nil && number == 0 {
		err = storage.ErrNotFound
	}
	if err == nil {
		file, err = loadArchiveNumber(ctx, s, id, number)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read the archive of campaign %s: %w", id, err)
	}
	return file, number, nil
}

// Load reads the record of a campaign from its newest archive. It returns storage.ErrNotFound or board.ErrDamaged.
func Load(ctx context.Context, s storage.Store, id string) (*manifest.Campaign, error) {
	file, _, err := loadArchive(ctx, s, id)
	if err != nil {
		return nil, err
	}
	return &file.Campaign, nil
}

func loadArchiveNumber(ctx context.Context, s storage.Store, id string, number int) (*archiveFile, error) {
	data, err := s.Get(ctx, Key(id, number))
	if err != nil {
		return nil, err
	}
	file, err := decodeArchive(data)
	if err == nil && file.Campaign.ID != id {
		err = fmt.Errorf("it belongs to campaign %s", file.Campaign.ID)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", board.ErrDamaged, err)
	}
	return file, nil
}

// completeRestore restores the messages of a campaign whose record is back on the board.
func (a *Archiver) completeRestore(ctx context.Context, id string) error {
	a.work.Lock()
	defer a.work.Unlock()
	return a.restoreMessages(ctx, id)
}

// restoreMessages restores the messages and the status of a campaign whose record is restored, and then makes the
// campaign active. It is idempotent.
func (a *Archiver) restoreMessages(ctx context.Context, id string) error {
	c, err := board.Read(ctx, a.cfg.Board, id)
	if err != nil || c.Restoring == 0 {
		return err
	}
	file, err := loadArchiveNumber(ctx, a.cfg.Store, id, c.Restoring)
	if err == nil {
		err = a.republish(ctx, file)
	}
	if err != nil {
		return fmt.Errorf("restore the messages of campaign %s: %w", id, err)
	}
	_, err = board.Update(ctx, a.cfg.Board, id, func(c *manifest.Campaign) error {
		if c.Restoring == 0 {
			return board.ErrUnchanged
		}
		c.Restoring = 0
		return nil
	})
	return err
}

// letterKey identifies a dead letter.
type letterKey struct {
	id     string
	round  int
	buried int64
}

func letterKeyOf(l queue.DeadLetter) letterKey { return letterKey{l.ID, l.Round, l.Buried.UnixNano()} }

// republish publishes the outcomes and the dead letters of an archive, and then the status. After a crash it publishes some
// twice, which readers ignore: a letter that is there may be one that another leader is about to remove.
func (a *Archiver) republish(ctx context.Context, file *archiveFile) error {
	id := file.Campaign.ID
	q, err := a.cfg.Inspect(ctx, id)
	if err != nil {
		return err
	}
	q.RenewEpoch()
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
	return a.cfg.Board.Put(ctx, manifest.KeyStatusPrefix+id, data)
}

// Admit enters a submitted campaign into the index before anything of it is stored. If the campaign is in the archive, the
// submission has no effect: adopt writes the archived record with the number of its archive to the board and returns the
// record, and Admit restores the messages. The error is index.ErrDeleting while the campaign's data are deleted.
func (a *Archiver) Admit(
	ctx context.Context, c *manifest.Campaign, adopt func(archived *manifest.Campaign, number int) (*manifest.Campaign, error),
) error {
	a.work.Lock()
	defer a.work.Unlock()
	newest, err := a.x.Newest(ctx, c.ID)
	if err != nil {
		return err
	}
	if newest.State == index.Archived {
		archived, number, err := loadArchive(ctx, a.cfg.Store, c.ID)
		if err != nil {
			return err
		}
		if c, err = adopt(&archived.Campaign, number); err != nil {
			return err
		}
		if err := a.restoreMessages(ctx, c.ID); err != nil {
			return err
		}
	}
	return a.x.Open(ctx, c)
}
