package coordinator

import (
	"context"
	"errors"
	"fmt"

	"ddiff/coordinator/archive"
	"ddiff/coordinator/board"
	"ddiff/coordinator/index"
	"ddiff/manifest"
	"ddiff/queue"
)

// newArchiver returns the archiver of a term, in which all has the runners.
func (s *Service) newArchiver(all *runners) *archive.Archiver {
	return archive.New(archive.Config{
		Board: s.cfg.Board, Store: s.cfg.Store, Inspect: s.inspect, Running: all.has,
		Tick: s.cfg.Tick, After: s.cfg.ArchiveAfter, Restart: s.cfg.Restart, Now: s.cfg.Now, Logger: s.cfg.Logger,
	})
}

// inspect returns the queue of a campaign, without a consumer where Config.Inspect is set.
func (s *Service) inspect(ctx context.Context, id string) (*queue.Queue, error) {
	if s.cfg.Inspect != nil {
		return s.cfg.Inspect(id)
	}
	return s.cfg.Open(ctx, id, 1)
}

// adoptStored replaces the record of a board that is older than the store. It ends the runner of a campaign that needs no coordinator
// then.
func (r *runner) adoptStored(ctx context.Context) error {
	c, revision, err := r.s.archive.Reconcile(ctx, r.rec)
	switch {
	case err != nil:
		return err
	case c == nil:
		r.rec = nil
		return errEnded
	}
	r.adopt(c, revision)
	if !board.Active(c) {
		return errEnded
	}
	return nil
}

// admit examines a campaign that was just submitted. If it is in the archive, the submission has no effect: the record
// becomes the archived record. Otherwise the campaign is entered into the index before anything of it is stored.
func (r *runner) admit(ctx context.Context) error {
	if !board.IsNew(r.rec) {
		return nil
	}
	err := r.s.archive.Admit(ctx, r.rec, func(archived *manifest.Campaign) error {
		return r.save(ctx, func(c *manifest.Campaign) {
			commands := c.Commands
			*c = *archived
			c.Commands = commands
		})
	})
	switch {
	case errors.Is(err, index.ErrDeleting):
		return rejection{err}
	case err != nil:
		return err
	case r.rec.Phase.Ended():
		return errEnded // a newer record with a command continues it
	}
	return nil
}

// checkOutput rejects a campaign that has not begun while results in its output are being deleted: it would count results
// that are deleted afterwards. The campaign is on the board before this check, and a deletion enters the index before it
// looks for other campaigns of the output, so at least one of two sees the other.
func (r *runner) checkOutput(ctx context.Context) error {
	if r.rec.Prior.SHA256 != "" {
		return nil
	}
	id, err := index.New(r.s.cfg.Store).DeletingResults(ctx, r.rec.Output)
	if err != nil || id == "" {
		return err
	}
	return rejection{fmt.Errorf("the results of campaign %s in the same output are being deleted; resume this campaign after "+
		"ddiff delete %s --results has finished", id, id)}
}
