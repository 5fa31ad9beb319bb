package archive

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"ddiff/coordinator/board"
	"ddiff/coordinator/index"
	"ddiff/internal/retry"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/storage"
)

// listPage is the number of campaigns in one answer. An answer must fit into a record of the board.
const listPage = 4000

// errBusy: the campaign has ended, and its runner has not.
var errBusy = errors.New("the campaign is about to end")

// answerPause is the pause before a request is tried again.
const answerPause = 250 * time.Millisecond

// Answer answers the request in a record, until ctx ends or the sender gives up. It retries after errors, and while the campaign
// is busy.
func (a *Archiver) Answer(ctx context.Context, key string) {
	for ctx.Err() == nil {
		err := a.answer(ctx, key)
		if err == nil {
			return
		}
		if ctx.Err() == nil && !errors.Is(err, errBusy) {
			a.cfg.Logger.Warn("could not answer a request, will retry", "request", key, "reason", err)
		}
		_ = retry.Sleep(ctx, answerPause) // the loop checks ctx
	}
}

func (a *Archiver) answer(ctx context.Context, key string) error {
	data, revision, err := a.cfg.Board.Get(ctx, key)
	if errors.Is(err, queue.ErrNoRecord) {
		return nil // the sender has given up
	}
	if err != nil {
		return err
	}
	c, err := board.Parse(strings.TrimPrefix(key, manifest.KeyCampaignPrefix), data)
	if err != nil || c.Request == nil || c.Request.Answered {
		return err
	}
	r := c.Request
	err = a.execute(ctx, r)
	switch {
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, queue.ErrNoRecord):
		r.Missing = true
	case errors.Is(err, index.ErrDeleting), errors.Is(err, board.ErrDamaged), errors.Is(err, board.ErrRefused), errors.Is(err, queue.ErrBadName),
		errors.Is(err, storage.ErrBadKey):
		r.Error = err.Error()
	case err != nil:
		return err
	}
	r.Answered = true
	if data, err = json.Marshal(c); err != nil {
		return err
	}
	_, err = a.cfg.Board.Update(ctx, key, data, revision)
	return board.IgnoreConflict(err)
}

func (a *Archiver) execute(ctx context.Context, r *manifest.Request) error {
	switch r.Verb {
	case manifest.RequestRecall:
		return a.inTurn(func() error { return a.recall(ctx, r.Campaign) })
	case manifest.RequestArchive:
		return a.inTurn(func() error { return a.archiveNow(ctx, r.Campaign) })
	case manifest.RequestList:
		return a.list(ctx, r)
	case manifest.RequestLogs:
		return a.logs(ctx, r)
	case manifest.RequestNote:
		if r.Ask != nil {
			board.LogAsk(a.cfg.Logger, *r.Ask, "campaign", r.Campaign)
		}
		return nil
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

// listed is an archived campaign in the answer to a request.
type listed struct {
	ID string `json:"id"`
	index.Row
}

// list answers with the archived campaigns after r.After, in the order of their ids.
func (a *Archiver) list(ctx context.Context, r *manifest.Request) error {
	entries, err := a.x.All(ctx)
	if err != nil {
		return err
	}
	var rows []listed
	for _, id := range slices.Sorted(maps.Keys(entries)) {
		if e := entries[id]; e.State == index.Archived && id > r.After {
			rows = append(rows, listed{id, e.Row})
		}
	}
	r.More = len(rows) > listPage
	r.List, err = pack(rows[:min(len(rows), listPage)])
	return err
}

// maxUnpacked is the limit of an answer's size before the compression.
const maxUnpacked = 32 << 20

// pack returns the compressed JSON of an answer.
func pack(answer any) ([]byte, error) {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	err := errors.Join(json.NewEncoder(zip).Encode(answer), zip.Close())
	return out.Bytes(), err
}

// unpack reads what pack returns.
func unpack(data []byte, answer any) error {
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return err
	}
	if data, err = io.ReadAll(io.LimitReader(zip, maxUnpacked+1)); err != nil {
		return err
	}
	if len(data) > maxUnpacked {
		return fmt.Errorf("the answer has more than %d MiB", maxUnpacked>>20)
	}
	return json.Unmarshal(data, answer)
}
