package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"ddiff/coordinator/board"
	"ddiff/coordinator/index"
	"ddiff/internal/retry"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/storage"
)

// listPage is the number of campaigns in one answer, which must fit into a message.
const listPage = 3000

// boardPage is the size of the records in one answer above which the next record goes into another one.
const boardPage = queue.MaxRecordBytes / 2

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
		out, err := a.execute(ctx, r)
		switch {
		case err == nil:
			return encode(out)
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

// execute executes a request. Each is idempotent.
func (a *Archiver) execute(ctx context.Context, r *request) (out answer, err error) {
	switch r.Verb {
	case verbRecall:
		return out, a.inTurn(func() error { return a.recall(ctx, r.Campaign) })
	case verbArchive:
		return out, a.inTurn(func() error { return a.archiveNow(ctx, r.Campaign) })
	case verbList:
		return a.list(ctx, r)
	case verbBoard:
		return a.records(ctx, r)
	case verbLogs:
		return a.logs(ctx, r)
	}
	return out, fmt.Errorf("%w: unknown request %q; use one version of ddiff everywhere", board.ErrRefused, r.Verb)
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

// list answers with the archived campaigns after r.After, in the order of their ids.
func (a *Archiver) list(ctx context.Context, r *request) (out answer, err error) {
	entries, err := a.x.All(ctx)
	if err != nil {
		return out, err
	}
	last := ""
	for _, id := range slices.Sorted(maps.Keys(entries)) {
		e := entries[id]
		if e.State != index.Archived || id <= r.After {
			continue
		}
		if len(out.Keys) == listPage {
			out.Last = last
			break
		}
		out.Keys, last = append(out.Keys, e.Key()), id
	}
	return out, nil
}

// records answers with the records of the campaigns on the board and of their statuses after r.After, in the order of their keys.
func (a *Archiver) records(ctx context.Context, r *request) (out answer, err error) {
	found, err := a.campaigns.Read(ctx)
	if err != nil {
		return out, err
	}
	statuses, err := a.statuses.Read(ctx)
	if err != nil {
		return out, err
	}
	maps.Copy(found, statuses)
	size, last := 0, ""
	for _, key := range slices.Sorted(maps.Keys(found)) {
		if key <= r.After {
			continue
		}
		data := found[key].Data
		if size += len(data); size > boardPage && last != "" {
			out.Last = last
			break
		}
		out.Keys, out.Sizes, out.records, last = append(out.Keys, key), append(out.Sizes, len(data)), append(out.records, data), key
	}
	return out, nil
}
