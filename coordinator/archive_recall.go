package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"golang.org/x/sync/errgroup"

	"ddiff/coordinator/board"
	"ddiff/coordinator/ledger"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/storage"
)

// recallParallel is the number of messages that a recall publishes concurrently.
const recallParallel = 64

// recall returns an archived campaign to the board. It is idempotent, and returns storage.ErrNotFound if there is no such
// campaign.
func (a *archiver) recall(ctx context.Context, id string) error {
	c, err := board.Read(ctx, a.s.cfg.Board, id)
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
	stored, storedErr := board.Load(ctx, a.s.cfg.Store, id)
	file, number, err := loadArchive(ctx, a.s.cfg.Store, id)
	for _, err := range []error{storedErr, err} {
		if err != nil && !errors.Is(err, storage.ErrNotFound) && !errors.Is(err, board.ErrDamaged) {
			return err // an outage
		}
	}
	c := stored
	switch {
	case err == nil && (newest.state == indexArchived || storedErr != nil || sameEnd(stored, &file.Campaign)):
		c = &file.Campaign
		c.Recalled, c.Restoring = a.s.cfg.Now().UTC(), number
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
	level := slog.LevelWarn // the board has lost the record
	if newest.state == indexArchived {
		level = slog.LevelInfo
	}
	a.s.cfg.Logger.Log(ctx, level, "restored a campaign from storage", "campaign", id, "phase", c.Phase)
	return a.restoreMessages(ctx, id)
}

// recount publishes the status of an ended campaign whose status was lost with the board. It counts the items by the
// ledger in the store.
func (a *archiver) recount(ctx context.Context, c *manifest.Campaign) error {
	r := newRunner(a.s, c)
	r.rec, r.ledger = c, ledger.New()
	err := r.openResults()
	if err == nil {
		err = r.restoreLedger(ctx)
	}
	if err == nil && r.ledger.Open() > 0 {
		err = r.settleListed(ctx)
	}
	if err != nil {
		return err
	}
	return r.publishStatus(ctx, 0)
}

// sameEnd reports whether a record is that of the same end of a campaign as an archived one.
func sameEnd(c, archived *manifest.Campaign) bool {
	return c.Phase == archived.Phase && c.Finished.Equal(archived.Finished)
}

// loadArchive reads the newest archive of a campaign. It returns storage.ErrNotFound or errDamagedRecord.
func loadArchive(ctx context.Context, s storage.Store, id string) (file *archiveFile, number int, err error) {
	number, err = index{s}.archive(ctx, id)
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

func loadArchiveNumber(ctx context.Context, s storage.Store, id string, number int) (*archiveFile, error) {
	data, err := s.Get(ctx, archiveKey(id, number))
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
func (a *archiver) completeRestore(ctx context.Context, id string) error {
	a.work.Lock()
	defer a.work.Unlock()
	return a.restoreMessages(ctx, id)
}

// restoreMessages restores the messages and the status of a campaign whose record is restored, and then makes the
// campaign active. It is idempotent.
func (a *archiver) restoreMessages(ctx context.Context, id string) error {
	c, err := board.Read(ctx, a.s.cfg.Board, id)
	if err != nil || c.Restoring == 0 {
		return err
	}
	file, err := loadArchiveNumber(ctx, a.s.cfg.Store, id, c.Restoring)
	if err == nil {
		err = a.republish(ctx, file)
	}
	if err != nil {
		return fmt.Errorf("restore the messages of campaign %s: %w", id, err)
	}
	_, err = board.Update(ctx, a.s.cfg.Board, id, func(c *manifest.Campaign) error {
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
func (a *archiver) republish(ctx context.Context, file *archiveFile) error {
	id := file.Campaign.ID
	q, err := a.s.inspect(ctx, id)
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
		file, number, err := loadArchive(ctx, r.s.cfg.Store, r.id)
		if err != nil {
			return err
		}
		err = r.save(ctx, func(c *manifest.Campaign) {
			commands := c.Commands
			*c = file.Campaign
			c.Commands, c.Recalled, c.Restoring = commands, r.s.cfg.Now().UTC(), number
		})
		if err != nil {
			return err
		}
		if err := a.restoreMessages(ctx, r.id); err != nil {
			return err
		}
	}
	if err := a.x.open(ctx, r.rec); errors.Is(err, errDeleting) {
		return rejection{err}
	} else if err != nil {
		return err
	}
	if r.rec.Phase.Ended() {
		return errEnded // a newer record with a command continues it
	}
	return nil
}

// checkOutput rejects a campaign that has not begun while results in its output are being deleted: it would count results
// that are deleted afterwards. The campaign is on the board before this check, and a deletion enters the index before it
// looks for other campaigns of the output, so at least one of two sees the other.
func (r *runner) checkOutput(ctx context.Context) error {
	if r.s.cfg.run != nil || r.rec.Prior.SHA256 != "" {
		return nil
	}
	entries, err := r.s.archive.x.all(ctx)
	if err != nil {
		return err
	}
	for id, e := range entries {
		if e.state != indexDeleting || !e.results || e.output != outputDigest(r.rec.Output) {
			continue
		}
		if isClaim(id) {
			return rejection{errors.New("the results in its output are being deleted; resume this campaign after ddiff gc --results has finished, " +
				"or if it was interrupted, after ddiff gc an hour later")}
		}
		return rejection{fmt.Errorf("the results of campaign %s in the same output are being deleted; resume this campaign after "+
			"ddiff delete %s --results has finished", id, id)}
	}
	return nil
}

func isNew(c *manifest.Campaign) bool { return c.Phase == manifest.PhaseQueued && c.Prior.SHA256 == "" }

// settleRecalled completes the ledger of a campaign that came from the archive: outcomes that no part of the ledger has
// are in the result stream again if their items are not done, and the results in storage prove the done items.
func (r *runner) settleRecalled(ctx context.Context) error {
	if r.rec.Recalled.IsZero() {
		return nil
	}
	if err := r.catchUp(ctx); err != nil || r.ledger.Open() == 0 {
		return err
	}
	return r.settleListed(ctx)
}
