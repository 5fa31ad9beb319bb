package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"ddiff/coordinator/board"
	"ddiff/coordinator/shard"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/restore/item"
	"ddiff/storage"
)

// An answer with records of attempts must fit into a message. A record has at most 20 lines of some 500 bytes.
const (
	// logPage is the number of records in one answer, logPageBytes the limit of their stored size, six times which they may have as JSON.
	logPage      = 200
	logPageBytes = 100 << 10
	// maxLogs is about the number of records that Logs reads.
	maxLogs = 2000
	// maxResultBytes is the size of objects above which they are no results of a sound worker.
	maxResultBytes = 1 << 20
	// logParallel is the number of records that are read concurrently.
	logParallel = 16
	// logItems is the number of items whose results are read for one beginning of an identity.
	logItems = 16
	// logWindows is the number of windows in which rows are looked for that could not be read.
	logWindows = 64
)

// Logs returns the records of attempts of a campaign through the leader, in the order of their ends: those that did not
// restore their item, and for an item also the one that did. item is an identity or its beginning; without it, Logs
// returns the records of all items, about 2,000 at most; more reports that there are others. It returns queue.ErrNoRecord
// for an unknown campaign, ErrRefused for an item that begins many identities, and ErrNoLeader.
func Logs(ctx context.Context, b *queue.Board, campaign, item string) (all []manifest.AttemptLog, more bool, err error) {
	for r := (request{Verb: verbLogs, Campaign: campaign, Item: item}); ; {
		page, err := send(ctx, b, r)
		if err != nil {
			return nil, false, fmt.Errorf("read the logs of campaign %s: %w", campaign, err)
		}
		all = append(all, page.Attempts...)
		r.After = page.Last
		if more = r.After != ""; !more || len(all) >= maxLogs {
			break
		}
	}
	slices.SortStableFunc(all, func(x, y manifest.AttemptLog) int { return x.At.Compare(y.At) })
	return all, more, nil
}

// logs answers with the records after the key r.After.
func (a *Archiver) logs(ctx context.Context, r *request) (out answer, err error) {
	output, err := a.outputOf(ctx, r.Campaign)
	if err != nil {
		return out, err
	}
	if strings.ContainsAny(r.Item, "/\\") {
		return out, fmt.Errorf("%w: %q is not the beginning of an identity", board.ErrRefused, r.Item)
	}
	store, err := storage.NewPrefixed(a.cfg.Store, output)
	if err != nil {
		return out, fmt.Errorf("%w: %w", board.ErrRefused, err)
	}
	if r.Item != "" && r.After == "" {
		if out.Attempts, err = restoredAttempts(ctx, store, r.Item); err != nil {
			return out, err
		}
	}
	if r.After == "" {
		failed, err := a.failedRows(ctx, r.Campaign, r.Item)
		if err != nil {
			return out, err
		}
		out.Attempts = append(out.Attempts, failed...)
	}
	var keys []string
	var size int64
	for info, err := range store.List(ctx, manifest.LogPrefix(r.Campaign, r.Item)) {
		if err != nil {
			return out, fmt.Errorf("list logs: %w", err)
		}
		nested := strings.Contains(strings.TrimPrefix(info.Key, manifest.LogPrefix(r.Campaign, "")), "/") // of another output inside
		if nested || info.Key <= r.After || info.Size > logPageBytes {                                    // a larger one is not that of a sound worker
			continue
		}
		if size += info.Size; len(keys) == logPage || size > logPageBytes {
			out.Last = keys[len(keys)-1]
			break
		}
		keys = append(keys, info.Key)
	}
	read := make([]*manifest.AttemptLog, len(keys))
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(logParallel)
	for i, key := range keys {
		group.Go(func() (err error) {
			read[i], err = readAttempt(inner, store, key)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return out, err
	}
	for _, attempt := range read {
		if attempt != nil {
			out.Attempts = append(out.Attempts, *attempt)
		}
	}
	return out, nil
}

// failedRows returns the items of a campaign that the coordinator could not make, because it could not read their rows: at most logPage
// of the first logWindows windows.
func (a *Archiver) failedRows(ctx context.Context, campaign, item string) (out []manifest.AttemptLog, err error) {
	windows := 0
	for w, err := range shard.All(ctx, a.cfg.Store, campaign) {
		if err != nil {
			return nil, err
		}
		for _, f := range w.Failed {
			if strings.HasPrefix(f.Item.ID, item) && len(out) < logPage {
				f.Worker = "coordinator"
				out = append(out, manifest.AttemptOf(&f))
			}
		}
		if windows++; windows == logWindows || len(out) == logPage {
			break
		}
	}
	return out, nil
}

// outputOf returns the output of a campaign, which may be in the archive.
func (a *Archiver) outputOf(ctx context.Context, id string) (string, error) {
	c, err := board.Read(ctx, a.cfg.Board, id)
	if errors.Is(err, queue.ErrNoRecord) {
		c, err = board.Load(ctx, a.cfg.Store, id)
	}
	if err != nil {
		return "", err
	}
	return c.Output, nil
}

// readAttempt reads a record. It returns nil for one that was deleted meanwhile, or is damaged.
func readAttempt(ctx context.Context, s storage.Store, key string) (*manifest.AttemptLog, error) {
	data, err := s.Get(ctx, key)
	if errors.Is(err, storage.ErrNotFound) || errors.Is(err, storage.ErrCorrupt) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read log: %w", err)
	}
	var attempt manifest.AttemptLog
	if json.Unmarshal(data, &attempt) != nil {
		return nil, nil //nolint:nilerr // the record is left out
	}
	return &attempt, nil
}

// restoredAttempts returns the attempts that restored the items whose identities begin with a text.
func restoredAttempts(ctx context.Context, s storage.Store, it string) ([]manifest.AttemptLog, error) {
	var out []manifest.AttemptLog
	seen := map[string]bool{}
	for info, err := range s.List(ctx, item.ItemsFolder+it) {
		if err != nil {
			return nil, fmt.Errorf("list results: %w", err)
		}
		id, file, _ := strings.Cut(strings.TrimPrefix(info.Key, item.ItemsFolder), "/")
		if seen[id] = true; len(seen) > logItems {
			return nil, fmt.Errorf("%w: more than %d items begin with %s; give more of the id", board.ErrRefused, logItems, it)
		}
		if file != item.FileResult || info.Size > maxResultBytes {
			continue
		}
		data, err := s.Get(ctx, info.Key)
		if err != nil {
			return nil, fmt.Errorf("read result: %w", err)
		}
		var result item.Result
		if json.Unmarshal(data, &result) == nil {
			out = append(out, manifest.AttemptOf(&result))
		}
	}
	return out, nil
}
