package gc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"ddiff/api"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/index"
	"ddiff/internal/record"
	"ddiff/restore/item"
	"ddiff/storage"
)

const (
	// checkpointAge and probeAge protect the objects of workers that are about to use them.
	checkpointAge = time.Hour
	probeAge      = 24 * time.Hour
	// folderAge protects the folder of a campaign that is not in the index yet, and priorAge a prior that was copied for it.
	folderAge = 24 * time.Hour
	priorAge  = 24 * time.Hour
	// buriedAge is the age of a backup of NATS from which on it brings a deleted campaign back.
	buriedAge = 90 * 24 * time.Hour
)

// Config selects what Collect deletes.
type Config struct {
	// Keep is the time after their end for which archived campaigns are kept; 0 keeps all. Results includes their
	// results, as in Delete.
	Keep    time.Duration
	Results bool
}

// Collect deletes garbage: interrupted deletions, checkpoints of items that have their result and all its files, leftovers of preflights,
// windows, rounds and logs without a campaign, priors and operator files that no campaign uses, entries of the index that no
// longer count, and campaigns beyond Keep. A problem with one campaign does not stop the others; the errors are joined.
func (c *Cleaner) Collect(ctx context.Context, cfg Config) ([]api.Removal, error) {
	if err := c.checkIndex(ctx); err != nil {
		return nil, fmt.Errorf("collect garbage: %w", err)
	}
	x := index.New(c.Store)
	newest, err := x.All(ctx)
	if err != nil {
		return nil, err
	}
	var all []api.Removal
	var errs error
	add := func(removed []api.Removal, err error) {
		errs = errors.Join(errs, err)
		all = append(all, removed...)
	}
	for _, id := range slices.Sorted(maps.Keys(newest)) {
		e := newest[id]
		expired := e.State == index.Archived && cfg.Keep > 0 && c.now().Sub(e.Row.Finished) > cfg.Keep
		if expired || e.State == index.Deleting {
			removed, err := c.Delete(ctx, id, expired && cfg.Results)
			if e.State == index.Deleting && errors.Is(err, board.ErrRefused) {
				err = nil // a coordinator, which knows the board, is at it; otherwise the next call completes it
			}
			add(removed, err)
			delete(newest, id)
		}
	}
	add(c.removeOne(ctx, "index", "superseded", c.superseded(ctx, newest)))
	add(c.collectFolders(ctx, newest))
	add(c.collectOutputs(ctx, newest))
	add(c.collectPriors(ctx))
	return all, errs
}

// removeOne is remove with an empty list if nothing was removed.
func (c *Cleaner) removeOne(ctx context.Context, kind, name string, listing objects) ([]api.Removal, error) {
	r, err := c.remove(ctx, kind, name, listing, nil)
	if r.Objects == 0 {
		return nil, err
	}
	return []api.Removal{r}, err
}

// superseded lists the entries of the index that no longer count, and the old marks of deleted campaigns.
func (c *Cleaner) superseded(ctx context.Context, newest map[string]index.Entry) objects {
	return c.list(ctx, index.Prefix, func(i storage.Info) bool {
		e, ok := index.ParseKey(i.Key)
		return ok && e.Number < newest[e.ID].Number || index.IsTombstone(i.Key) && c.now().Sub(i.Modified) >= buriedAge
	})
}

// collectFolders deletes folders of campaigns without a record and an entry in the index.
func (c *Cleaner) collectFolders(ctx context.Context, newest map[string]index.Entry) ([]api.Removal, error) {
	orphans := map[string]bool{}
	for info, err := range c.Store.List(ctx, "campaigns/") {
		if err != nil {
			return nil, fmt.Errorf("list campaigns: %w", err)
		}
		id, _, _ := strings.Cut(strings.TrimPrefix(info.Key, "campaigns/"), "/")
		if info.Key == board.StoredKey(id) || c.now().Sub(info.Modified) < folderAge || strings.HasPrefix(info.Key, index.Prefix) {
			orphans[id] = false
		} else if _, known := orphans[id]; !known {
			orphans[id] = true
		}
	}
	var all []api.Removal
	for _, id := range slices.Sorted(maps.Keys(orphans)) {
		if _, indexed := newest[id]; !orphans[id] || indexed {
			continue
		}
		removed, err := c.removeOne(ctx, "windows", id, c.list(ctx, "campaigns/"+id+"/", func(i storage.Info) bool {
			return c.now().Sub(i.Modified) >= folderAge // the campaign may be submitted again meanwhile
		}))
		all = append(all, removed...)
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// collectOutputs deletes the checkpoints and the probes that no worker needs, output by output.
func (c *Cleaner) collectOutputs(ctx context.Context, newest map[string]index.Entry) ([]api.Removal, error) {
	// A campaign without a record has no output yet.
	records, err := c.records(ctx, slices.Collect(maps.Keys(newest)), storage.ErrNotFound, board.ErrDamaged)
	if err != nil {
		return nil, err
	}
	outputs := map[string]bool{} // finished: no item of the output is open
	for _, r := range records {
		output := strings.TrimSuffix(r.Output, "/")
		archived := newest[r.ID].State == index.Archived && newest[r.ID].Row.Phase == record.PhaseFinished
		finished, known := outputs[output]
		outputs[output] = archived && (finished || !known)
	}
	var all []api.Removal
	var errs error
	for _, output := range slices.Sorted(maps.Keys(outputs)) {
		part, err := storage.NewPrefixed(c.Store, output)
		if err != nil {
			continue // the campaign was rejected for its output
		}
		removed, err := c.collectOutput(ctx, part, output, outputs[output])
		logs, logsErr := c.collectLogs(ctx, part, output, newest)
		all = append(append(all, removed...), logs...)
		errs = errors.Join(errs, err, logsErr)
	}
	return all, errs
}

// CollectOutput deletes the garbage of one output in Store, which belongs to ddiff run: checkpoints of items that have
// their result, and probes. name names the output.
func (c *Cleaner) CollectOutput(ctx context.Context, name string) ([]api.Removal, error) {
	return c.collectOutput(ctx, c.Store, name, false)
}

// collectOutput deletes the garbage of an output. finished means that all items of all its campaigns are settled.
func (c *Cleaner) collectOutput(ctx context.Context, part storage.Store, name string, finished bool) ([]api.Removal, error) {
	cleaner := *c
	cleaner.Store = part
	var failed error
	checkpoints := cleaner.list(ctx, "checkpoints/", func(i storage.Info) bool {
		if c.now().Sub(i.Modified) < checkpointAge || failed != nil || !IsOutputKey(i.Key) {
			return false
		}
		if finished {
			return true
		}
		id, _, _ := strings.Cut(strings.TrimPrefix(i.Key, "checkpoints/"), ".")
		_, err := part.Stat(ctx, item.Key(id, item.FileResult))
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			failed = err
		}
		return err == nil
	})
	all, err := cleaner.removeOne(ctx, "checkpoints", name, cleaner.withoutAwaited(ctx, "", checkpoints))
	probes, probeErr := cleaner.removeOne(ctx, "probes", name, cleaner.list(ctx, "probes/", func(i storage.Info) bool {
		return c.now().Sub(i.Modified) >= probeAge && IsOutputKey(i.Key)
	}))
	return append(all, probes...), errors.Join(err, failed, probeErr)
}

// withoutAwaited lists the checkpoints of a listing, below the prefix of their output, but for files that are yet to replace those of a lost attempt.
func (c *Cleaner) withoutAwaited(ctx context.Context, output string, checkpoints objects) objects {
	return func(yield func(storage.Info, error) bool) {
		for info, err := range checkpoints {
			awaited := false
			if err == nil {
				awaited, err = c.isAwaited(ctx, output, info.Key)
			}
			if !awaited && !yield(info, err) {
				return
			}
		}
	}
}

// isAwaited reports whether a checkpoint is a staged file that the stored result of its item names, or may name: it can be the only copy.
func (c *Cleaner) isAwaited(ctx context.Context, output, key string) (bool, error) {
	id, digest, _ := strings.Cut(strings.TrimPrefix(key, output+item.CheckpointsFolder), ".")
	if _, isStaged := item.ParseIdentity(digest); !isStaged {
		return false, nil
	}
	data, err := c.Store.Get(ctx, output+item.Key(id, item.FileResult))
	if errors.Is(err, storage.ErrNotFound) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("look up the files of item %s: %w", id, err)
	}
	res, err := item.DecodeResult(data)
	if err != nil {
		return true, nil //nolint:nilerr // verify reports a result that cannot be read
	}
	return slices.ContainsFunc(res.Replaces, func(name string) bool { return res.Artifacts[name] == digest }), nil
}

// collectLogs deletes the logs of campaigns without an entry in the index from an output.
func (c *Cleaner) collectLogs(ctx context.Context, part storage.Store, name string, newest map[string]index.Entry) ([]api.Removal, error) {
	cleaner := *c
	cleaner.Store = part
	logs := cleaner.list(ctx, record.LogsFolder, func(i storage.Info) bool {
		id, _, _ := strings.Cut(strings.TrimPrefix(i.Key, record.LogsFolder), "/")
		_, indexed := newest[id]
		return !indexed && c.now().Sub(i.Modified) >= folderAge && IsOutputKey(i.Key)
	})
	return cleaner.removeOne(ctx, "logs", name, logs)
}
