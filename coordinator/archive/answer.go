package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"ddiff/coordinator/board"
	"ddiff/coordinator/index"
	"ddiff/internal/retry"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/storage"
)

// errBusy: the campaign has ended, and its runner has not.
var errBusy = errors.New("the campaign is about to end")

// answerPause is the pause before a request is tried again.
const answerPause = 250 * time.Millisecond

// Answer answers a request of this package's functions. It retries after errors, and while the campaign is busy, until ctx ends or the
// sender gives up; then it returns nil. A repeated request waits for the answer to the first one.
func (a *Archiver) Answer(ctx context.Context, data []byte) []byte {
	var r request
	if json.Unmarshal(data, &r) != nil {
		return nil
	}
	answer, _, _ := a.answers.Do(r.ID, func() (any, error) { return a.answerTo(ctx, &r), nil })
	return answer.([]byte) //nolint:forcetypeassert // it is that of answerTo
}

func (a *Archiver) answerTo(ctx context.Context, r *request) []byte {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	for {
		err := a.execute(ctx, r)
		switch {
		case err == nil:
			return encode(answer{})
		case errors.Is(err, storage.ErrNotFound), errors.Is(err, queue.ErrNoRecord):
			return encode(answer{Missing: true})
		case errors.Is(err, index.ErrDeleting), errors.Is(err, board.ErrDamaged), errors.Is(err, board.ErrRefused), errors.Is(err, queue.ErrBadName),
			errors.Is(err, storage.ErrBadKey):
			return encode(answer{Error: err.Error()})
		case ctx.Err() == nil && !errors.Is(err, errBusy):
			a.cfg.Logger.Warn("could not answer a request, will retry", "verb", r.Verb, "campaign", r.Campaign, "reason", err)
		}
		if retry.Sleep(ctx, answerPause) != nil {
			return nil
		}
	}
}

// executeOnce executes a request. Each is idempotent.
func (a *Archiver) executeOnce(ctx context.Context, r *request) error {
	switch r.Verb {
	case verbRecall:
		return a.inTurn(func() error { return a.recall(ctx, r.Campaign) })
	case verbArchive:
		return a.inTurn(func() error { return a.archiveNow(ctx, r.Campaign) })
	}
	return fmt.Errorf("%w: unknown request %q; use one version of ddiff everywhere", board.ErrRefused, r.Verb)
}

// archiveNow archives a campaign that has ended, for its deletion, and removes its messages. It is idempotent.
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
			return errors.Join(errBusy, a.restore(ctx, id))
		}
	}
	switch {
	case err != nil:
		return err
	case board.Active(c):
		return fmt.Errorf("%w: the campaign has not ended, its phase is %s; cancel it first", board.ErrRefused, c.Phase)
	case a.cfg.Running(id):
		return errBusy
	}
	if err := a.archive(ctx, c, revision); err != nil {
		return err
	}
	if _, _, err := a.cfg.Board.Get(ctx, manifest.KeyCampaignPrefix+id); !errors.Is(err, queue.ErrNoRecord) {
		return errors.Join(errBusy, err) // resumed meanwhile
	}
	q, err := a.cfg.Inspect(ctx, id)
	if err != nil {
		return err
	}
	return q.Remove(ctx)
}
