package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/shard"
	"ddiff/internal/record"
	"ddiff/restore/item"
	"ddiff/storage"
)

const (
	// maxLogs is the number of records that Logs reads, maxLogsBytes the limit of their stored size. A record of a sound worker has at most 20 lines of
	// some 500 bytes; above maxLogBytes it is none.
	maxLogs      = 2000
	maxLogsBytes = 16 << 20
	maxLogBytes  = 100 << 10
	// maxResultBytes is the size of objects above which they are no results of a sound worker.
	maxResultBytes = 1 << 20
	// logParallel is the number of records that are read concurrently.
	logParallel = 16
	// logItems is the number of items whose results are read for one beginning of an identity.
	logItems = 16
	// logRows and logWindows are the numbers of rows that could not be read, and of windows in which they are looked for.
	logRows, logWindows = 200, 64
)

// Logs returns the records of attempts of a campaign in a store, in the order of their ends: those that did not restore their item, and for an item
// also the one that did. item is an identity or its beginning; without it, Logs returns the records of all items, 2,000 at most; more reports that
// there are others. It returns ErrRefused for an item that begins many identities.
func Logs(ctx context.Context, s storage.Store, c *record.Campaign, item string) (all []record.AttemptLog, more bool, err error) {
	if strings.ContainsAny(item, "/\\") {
		return nil, false, fmt.Errorf("%w: %q is not the beginning of an identity", board.ErrRefused, item)
	}
	store, err := storage.NewPrefixed(s, c.Output)
	if err != nil {
		return nil, false, fmt.Errorf("%w: %w", board.ErrRefused, err)
	}
	if item != "" {
		if all, err = restoredAttempts(ctx, store, item); err != nil {
			return nil, false, err
		}
	}
	failed, err := failedRows(ctx, s, c.ID, item)
	if err != nil {
		return nil, false, err
	}
	all = append(all, failed...)
	var keys []string
	var size int64
	for info, err := range store.List(ctx, record.LogPrefix(c.ID, item)) {
		if err != nil {
			return nil, false, fmt.Errorf("list logs: %w", err)
		}
		nested := strings.Contains(strings.TrimPrefix(info.Key, record.LogPrefix(c.ID, "")), "/") // of another output inside
		if nested || info.Size > maxLogBytes {
			continue
		}
		if size += info.Size; len(keys) == maxLogs || size > maxLogsBytes {
			more = true
			break
		}
		keys = append(keys, info.Key)
	}
	read := make([]*record.AttemptLog, len(keys))
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(logParallel)
	for i, key := range keys {
		group.Go(func() (err error) {
			read[i], err = readAttempt(inner, store, key)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, false, err
	}
	for _, attempt := range read {
		if attempt != nil {
			all = append(all, *attempt)
		}
	}
	slices.SortStableFunc(all, func(x, y record.AttemptLog) int { return x.At.Compare(y.At) })
	return all, more, nil
}

// failedRows returns the items of a campaign that the coordinator could not make, because it could not read their rows: at most logRows
// of the first logWindows windows.
func failedRows(ctx context.Context, s storage.Store, campaign, item string) (out []record.AttemptLog, err error) {
	windows := 0
	for w, err := range shard.All(ctx, s, campaign) {
		if err != nil {
			return nil, err
		}
		for _, f := range w.Failed {
			if strings.HasPrefix(f.Item.ID, item) && len(out) < logRows {
				f.Worker = "coordinator"
				out = append(out, record.AttemptOf(&f))
			}
		}
		if windows++; windows == logWindows || len(out) == logRows {
			break
		}
	}
	return out, nil
}

// readAttempt reads a record. It returns nil for one that was deleted meanwhile, or is damaged.
func readAttempt(ctx context.Context, s storage.Store, key string) (*record.AttemptLog, error) {
	data, err := s.Get(ctx, key)
	if errors.Is(err, storage.ErrNotFound) || errors.Is(err, storage.ErrCorrupt) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read log: %w", err)
	}
	var attempt record.AttemptLog
	if json.Unmarshal(data, &attempt) != nil {
		return nil, nil //nolint:nilerr // the record is left out
	}
	return &attempt, nil
}

// restoredAttempts returns the attempts that restored the items whose identities begin with a text.
func restoredAttempts(ctx context.Context, s storage.Store, it string) ([]record.AttemptLog, error) {
	var out []record.AttemptLog
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
			out = append(out, record.AttemptOf(&result))
		}
	}
	return out, nil
}
