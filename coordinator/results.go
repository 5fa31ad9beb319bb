package coordinator

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"ddiff/internal/coordinator/ledger"
	"ddiff/internal/coordinator/shard"
	"ddiff/restore/item"
	"ddiff/storage"
)

// results has the stored results of a campaign.
type results struct {
	store   storage.Store // the campaign's part of the store
	log     *slog.Logger
	now     func() time.Time
	missing missingResultsError // of the last report
}

const (
	// loadParallel is the number of concurrent reads from the store.
	loadParallel = 16
	// loadChunk is the number of results that are in memory at once.
	loadChunk = 256
)

// stored is the result of an item in the store.
type stored struct {
	found    bool
	result   item.Result
	campaign string    // that restored the item
	modified time.Time // by the clock of the store, see date
	// damage is set when the result exists but cannot be read.
	damage error
}

// missingResultsError lists the items that are done according to their outcomes, and whose results are missing from storage: a
// worker had another store, its credentials were stolen, or someone has deleted the results.
type missingResultsError []string

func (m missingResultsError) Error() string {
	return fmt.Sprintf("%d results that workers have reported are missing from the store", len(m))
}

// all yields the result of every settled item in the order of the manifest. It reads at
// most loadChunk results at once. The last pair has the error, if any: with strict, missingResultsError if any are missing.
func (s *results) all(ctx context.Context, stored *windows, l *ledger.Ledger, strict bool) iter.Seq2[item.Result, error] {
	return func(yield func(item.Result, error) bool) {
		s.missing = nil
		err := stored.each(ctx, func(w *shard.Window) error {
			failures := map[int]item.Result{} // by index in the manifest
			for _, f := range w.Failed {
				failures[f.Item.Index] = f
				w.Items = append(w.Items, f.Item)
			}
			slices.SortFunc(w.Items, func(a, b item.Item) int { return a.Index - b.Index })
			return s.of(ctx, l, w.Items, failures, func(res item.Result) bool {
				res.Item = res.Item.Public()
				return yield(res, nil)
			})
		})
		if err == nil && strict && len(s.missing) > 0 {
			err = s.missing
		}
		if err != nil && !errors.Is(err, errStop) {
			yield(item.Result{}, err)
		}
	}
}

// errStop: the reader of a stream wants no more.
var errStop = errors.New("stop")

// of yields the results of the settled items among some. failures has those of items that cannot be restored, by index in the
// manifest.
func (s *results) of(ctx context.Context, l *ledger.Ledger, items []item.Item, failures map[int]item.Result, yield func(item.Result) bool) error {
	for chunk := range slices.Chunk(items, loadChunk) {
		found, err := s.load(ctx, chunk, func(it *item.Item) bool {
			_, failed := failures[it.Index]
			return !failed && l.State(it.ID) == ledger.Done
		})
		if err != nil {
			return err
		}
		for i, it := range chunk {
			res, ok := failures[it.Index]
			if !ok {
				if res, ok = s.one(l, it, found[i]); !ok {
					continue
				}
			}
			if !yield(res) {
				return errStop
			}
		}
	}
	return nil
}

// one is the result of an item: the stored one if it is done, else that of the ledger. It returns false for
// pending items.
func (s *results) one(l *ledger.Ledger, it item.Item, found stored) (item.Result, bool) {
	switch state := l.State(it.ID); {
	case state == ledger.Pending:
		return item.Result{}, false
	case state == ledger.Failed || state == ledger.Dead:
		res := item.Result{Schema: item.SchemaVersion, Item: it, Outcome: item.OutcomeFailed, Reason: l.Reason(it.ID)}
		if state == ledger.Dead {
			res.Outcome = item.OutcomeDead
		}
		return res, true
	case found.damage != nil:
		s.log.Error("stored result cannot be read", "item", it.Name, "reason", found.damage)
		return s.failed(it, found.damage.Error()), true
	case !found.found:
		s.missing = append(s.missing, it.ID)
		key := item.Key(it.ID, item.FileResult)
		s.log.Error("stored result is missing", "item", it.Name, "key", key)
		return s.failed(it, fmt.Sprintf("read %s: it is missing; run again", key)), true
	}
	return found.result, true
}

// load reads the results of items concurrently. It reads only items that include reports true for; the others are not
// found.
func (s *results) load(ctx context.Context, items []item.Item, include func(it *item.Item) bool) ([]stored, error) {
	out := make([]stored, len(items))
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(loadParallel)
	for i := range items {
		if !include(&items[i]) {
			continue
		}
		group.Go(func() (err error) {
			out[i], err = s.loadOne(inner, items[i])
			return err
		})
	}
	return out, group.Wait()
}

func (s *results) loadOne(ctx context.Context, it item.Item) (stored, error) {
	key := item.Key(it.ID, item.FileResult)
	data, err := s.store.Get(ctx, key)
	if errors.Is(err, storage.ErrNotFound) {
		return stored{}, nil
	}
	if err != nil {
		return stored{}, fmt.Errorf("look up the result of item %s: %w", it.Name, err)
	}
	found := stored{found: true}
	found.result, err = item.DecodeResult(data)
	if err == nil && (found.result.Item.ID != it.ID || found.result.Outcome != item.OutcomeDone) {
		err = errors.New("it is not the result of this item")
	}
	if err != nil {
		found.damage = fmt.Errorf("read %s: %w; move the item's folder away and run again", key, err)
	} else if staged, err := s.hasStaged(ctx, &found.result); err != nil || staged {
		return stored{}, err
	}
	found.campaign, found.result.Item = found.result.Item.Campaign, it // another campaign may have restored it under another name
	return found, nil
}

// date reads when the results of a campaign were stored. One that is gone meanwhile has no time.
func (s *results) date(ctx context.Context, found []stored, campaign string) error {
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(loadParallel)
	for i := range found {
		if !found[i].found || found[i].campaign != campaign {
			continue
		}
		group.Go(func() error {
			info, err := s.store.Stat(inner, item.Key(found[i].result.Item.ID, item.FileResult))
			if err != nil && !errors.Is(err, storage.ErrNotFound) {
				return fmt.Errorf("look up the result of item %s: %w", found[i].result.Item.Name, err)
			}
			found[i].modified = info.Modified
			return nil
		})
	}
	return group.Wait()
}

// failed is the result of an item that the coordinator itself fails.
func (s *results) failed(it item.Item, reason string) item.Result {
	return item.Result{
		Schema: item.SchemaVersion, Item: it, Outcome: item.OutcomeFailed, Reason: reason, Finished: s.now().UTC(),
	}
}

// hasStaged reports whether files of a result have not yet replaced those of another attempt: its worker has died, and the next one does it.
func (s *results) hasStaged(ctx context.Context, res *item.Result) (bool, error) {
	for _, name := range res.Replaces {
		if _, err := s.store.Stat(ctx, item.StagedKey(res.Item.ID, res.Artifacts[name])); err == nil {
			return true, nil
		} else if !errors.Is(err, storage.ErrNotFound) {
			return false, fmt.Errorf("look up the files of item %s: %w", res.Item.ID, err)
		}
	}
	return false, nil
}

// each calls f with the identity of each result in storage whose files are in their places, and the time at which it was stored.
func (s *results) each(ctx context.Context, f func(id string, stored time.Time)) error {
	unsettled := map[string]bool{} // items with staged files, which may be those of an attempt that came second
	for info, err := range s.store.List(ctx, item.CheckpointsFolder) {
		if err != nil {
			return fmt.Errorf("list checkpoints: %w", err)
		}
		id, suffix, _ := strings.Cut(strings.TrimPrefix(info.Key, item.CheckpointsFolder), ".")
		if _, isStaged := item.ParseIdentity(suffix); isStaged && !unsettled[id] {
			found, err := s.loadOne(ctx, item.Item{ID: id, Name: id})
			if err != nil {
				return err
			}
			unsettled[id] = !found.found
		}
	}
	for info, err := range s.store.List(ctx, item.ItemsFolder) {
		if err != nil {
			return fmt.Errorf("list results: %w", err)
		}
		if id, ok := item.ResultOf(info.Key); ok && !unsettled[id] {
			f(id, info.Modified)
		}
	}
	return nil
}
