package coordinator

import (
	"context"
	"fmt"

	"ddiff/internal/coordinator/archive"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/index"
	"ddiff/internal/queue"
)

// newArchiver returns the archiver of a term.
func (s *Service) newArchiver() *archive.Archiver {
	return archive.New(archive.Config{
		Board: s.cfg.Board, Store: s.cfg.Store, Writer: s.writer, Inspect: s.inspect, Running: s.all.has, Compared: s.health.Compared,
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
	c, err := r.s.archive.Reconcile(ctx, r.rec)
	switch {
	case err != nil:
		return err
	case c == nil:
		r.rec = nil
		return errEnded
	}
	r.adopt(c)
	if !board.Active(c) && r.nextAsked() == nil {
		return errEnded
	}
	return nil
}

// checkOutput rejects a campaign that has not begun while results in its output are being deleted: it would count results
// that are deleted afterwards. The campaign is on the board before this check, and a deletion enters the index before it
// looks for other campaigns of the output, so at least one of two sees the other.
func (r *runner) checkOutput(ctx context.Context) error {
	if r.rec.Prior.Opened() {
		return nil
	}
	id, err := index.New(r.s.cfg.Store).DeletingResults(ctx, r.rec.Output)
	if err != nil || id == "" {
		return err
	}
	return rejection{fmt.Errorf("the results of campaign %s in the same output are being deleted; resume this campaign after "+
		"ddiff delete %s --results has finished", id, id)}
}
