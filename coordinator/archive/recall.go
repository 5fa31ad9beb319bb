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

// restore returns a campaign to the board: its record from its archive, or from the copy of the record in the store if that is
// newer, and the dead letters and the status of the archive. The number of published windows in a copy may be out of date; the
// ledger corrects it.
//
// After a crash the index has the campaign as open, and the next leader restores it. The record comes after the letters, so that no
// command misses them. It may publish some letters twice, which readers ignore: a letter that is there may be one that another
// leader is about to remove.
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
	file, err := loadArchive(ctx, a.cfg.Store, id)
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
		c.Recalled = a.cfg.Now().UTC()
	case newest.State == index.Archived:
		return err
	case storedErr != nil:
		return storedErr
	default:
		file = nil // of an earlier end
	}
	if err := a.x.Open(ctx, c); err != nil {
		return err
	}
	if err := a.restoreLetters(ctx, file); err != nil {
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
	return a.restoreStatus(ctx, file)
}

// sameEnd reports whether a record is that of the same end of a campaign as an archived one.
func sameEnd(c, archived *manifest.Campaign) bool {
	return c.Phase == archived.Phase && c.Finished.Equal(archived.Finished)
}

// loadArchive reads the newest archive of a campaign. It returns storage.ErrNotFound or board.ErrDamaged.
func loadArchive(ctx context.Context, s storage.Store, id string) (file *archiveFile, err error) {
	number, err := index.New(s).NewestArchive(ctx, id)
	if err == nil && number == 0 {
		err = storage.ErrNotFound
	}
	var data []byte
	if err == nil {
		data, err = s.Get(ctx, Key(id, number))
	}
	if err != nil {
		return nil, fmt.Errorf("read the archive of campaign %s: %w", id, err)
	}
	file, err = decodeArchive(data)
	if err == nil && file.Campaign.ID != id {
		err = fmt.Errorf("it belongs to campaign %s", file.Campaign.ID)
	}
	if err != nil {
		return nil, fmt.Errorf("read the archive of campaign %s: %w: %w", id, board.ErrDamaged, err)
	}
	return file, nil
}

// Load reads the record of a campaign from its newest archive. It returns storage.ErrNotFound or board.ErrDamaged.
func Load(ctx context.Context, s storage.Store, id string) (*manifest.Campaign, error) {
	file, err := loadArchive(ctx, s, id)
	if err != nil {
		return nil, err
	}
	return &file.Campaign, nil
}

// letterKey identifies a dead letter.
type letterKey struct {
	id     string
	round  int
	buried int64
}

func letterKeyOf(l queue.DeadLetter) letterKey { return letterKey{l.ID, l.Round, l.Buried.UnixNano()} }

// restoreLetters publishes the dead letters of an archive, if there is one.
func (a *Archiver) restoreLetters(ctx context.Context, file *archiveFile) error {
	if file == nil {
		return nil
	}
	q, err := a.cfg.Inspect(ctx, file.Campaign.ID)
	if err != nil {
		return err
	}
	q.RenewEpoch()
	for _, letter := range file.letters { // in order
		if err := q.PublishDead(ctx, letter); err != nil {
			return fmt.Errorf("restore the dead letters of campaign %s: %w", file.Campaign.ID, err)
		}
	}
	return nil
}

// restoreStatus writes the status of an archive, if there is one, to the board.
func (a *Archiver) restoreStatus(ctx context.Context, file *archiveFile) error {
	if file == nil {
		return nil
	}
	data, err := json.Marshal(file.Status)
	if err == nil {
		err = a.cfg.Board.Put(ctx, manifest.KeyStatusPrefix+file.Campaign.ID, data)
	}
	if err != nil {
		return fmt.Errorf("restore the status of campaign %s: %w", file.Campaign.ID, err)
	}
	return nil
}

// Admit enters a submitted campaign into the index before anything of it is stored. If the campaign is in the archive, the
// submission has no effect: Admit restores it, and adopt replaces the submitted record on the board by the archived one.
// The error is index.ErrDeleting while the campaign's data are deleted.
func (a *Archiver) Admit(ctx context.Context, c *manifest.Campaign, adopt func(archived *manifest.Campaign) error) error {
	a.work.Lock()
	defer a.work.Unlock()
	newest, err := a.x.Newest(ctx, c.ID)
	if err != nil {
		return err
	}
	if newest.State == index.Archived {
		file, err := loadArchive(ctx, a.cfg.Store, c.ID)
		if err == nil {
			err = a.restoreLetters(ctx, file)
		}
		if err == nil {
			c = &file.Campaign
			c.Recalled = a.cfg.Now().UTC()
			err = adopt(c)
		}
		if err == nil {
			err = a.restoreStatus(ctx, file)
		}
		if err != nil {
			return err
		}
	}
	return a.x.Open(ctx, c)
}
