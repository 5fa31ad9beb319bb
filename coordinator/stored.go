package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"ddiff/coordinator/ledger"
	"ddiff/coordinator/shard"
	"ddiff/restore/item"
	"ddiff/storage"
)

const (
	// loadParallel is the number of concurrent reads from the store.
	loadParallel = 16
	// loadChunk is the number of results that are in memory at once.
	loadChunk = 256
)

// stored is the result of an item in the store.
type stored struct {
	found  bool
	result item.Result
	// damage is set when the result exists but cannot be read.
	damage error
}

// load reads the results of items concurrently. It reads only items that include reports true for; the others are not
// found.
func (r *runner) load(ctx context.Context, items []item.Item, include func(it *item.Item) bool) ([]stored, error) {
	out := make([]stored, len(items))
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(loadParallel)
	for i := range items {
		if !include(&items[i]) {
			continue
		}
		group.Go(func() (err error) {
			out[i], err = r.loadOne(inner, items[i])
			return err
		})
	}
	return out, group.Wait()
}

func (r *runner) loadOne(ctx context.Context, it item.Item) (stored, error) {
	key := item.Key(it.ID, item.FileResult)
	data, err := r.results.Get(ctx, key)
	if errors.Is(err, storage.ErrNotFound) {
		return stored{}, nil
	}
	if err != nil {
		return stored{}, fmt.Errorf("look up the result of item %s: %w", it.Name, err)
	}
	s := stored{found: true}
	s.result, err = item.DecodeResult(data)
	if err == nil && (s.result.Item.ID != it.ID || s.result.Outcome != item.OutcomeDone) {
		err = errors.New("it is not the result of this item")
	}
	if err != nil {
		s.damage = fmt.Errorf("read %s: %w; move the item's folder away and run again", key, err)
	}
	s.result.Item = it // another campaign may have restored it under another name
	return s, nil
}

// settleStored settles the pending items that have a result in storage. A result that cannot be read fails its item; it
// is not overwritten.
func (r *runner) settleStored(ctx context.Context, items []item.Item) error {
	for chunk := range slices.Chunk(items, loadChunk) {
		found, err := r.load(ctx, chunk, func(it *item.Item) bool { return r.ledger.State(it.ID) == ledger.Pending })
		if err != nil {
			return err
		}
		for _, s := range found {
			if !s.found {
				continue
			}
			res := s.result
			if s.damage != nil {
				res = r.failedResult(res.Item, s.damage.Error())
				r.log.Error("stored result cannot be read", "item", res.Item.Name, "reason", s.damage)
			}
			if r.ledger.Settle(res.Item.ID, r.rec.Round, ledger.StateOf(res.Outcome), res.Reason) == 0 {
				continue
			}
			r.parts.NoteOutcome(res.Item.ID, r.rec.Round, ledger.StateOf(res.Outcome), res.Reason, true)
			r.ledger.MarkFound(res.Item.ID)
			r.watcher.itemSettled(res, s.damage == nil)
		}
	}
	return nil
}

// failedResult is the result of an item that the coordinator itself fails.
func (r *runner) failedResult(it item.Item, reason string) item.Result {
	return item.Result{
		Schema: item.SchemaVersion, Item: it, Outcome: item.OutcomeFailed, Reason: reason, Finished: r.s.cfg.Now().UTC(),
	}
}

// settleUnread settles the items that have a result in storage by one listing.
func (r *runner) settleUnread(ctx context.Context) error {
	return r.eachResult(ctx, func(id string) {
		if r.ledger.Settle(id, r.rec.Round, ledger.Done, "") > 0 {
			r.parts.NoteOutcome(id, r.rec.Round, ledger.Done, "", true)
		}
	})
}

// settleRead is settleUnread that reads each result which the ledger did not have.
func (r *runner) settleRead(ctx context.Context) error {
	found := map[string]bool{}
	err := r.eachResult(ctx, func(id string) {
		if r.ledger.State(id) == ledger.Pending {
			found[id] = true
		}
	})
	if err != nil || len(found) == 0 {
		return err
	}
	return r.windows.each(ctx, func(w *shard.Window) error {
		return r.settleStored(ctx, slices.DeleteFunc(w.Items, func(it item.Item) bool { return !found[it.ID] }))
	})
}

// eachResult calls f with the identity of each result in storage.
func (r *runner) eachResult(ctx context.Context, f func(id string)) error {
	const folder = "items/"
	for info, err := range r.results.List(ctx, folder) {
		if err != nil {
			return fmt.Errorf("list results: %w", err)
		}
		id, file, _ := strings.Cut(strings.TrimPrefix(info.Key, folder), "/")
		if file == item.FileResult {
			f(id)
		}
	}
	return nil
}

// reopenMissing makes items pending again that are done but have no result in storage.
func (r *runner) reopenMissing(ctx context.Context) error {
	present := map[ledger.Identity]bool{}
	if err := r.eachResult(ctx, func(id string) {
		if k, ok := ledger.ParseIdentity(id); ok {
			present[k] = true
		}
	}); err != nil {
		return err
	}
	missing := ledger.Round{Missing: true}
	err := r.windows.each(ctx, func(w *shard.Window) error {
		for _, it := range w.Items {
			if k, ok := ledger.ParseIdentity(it.ID); ok && !present[k] && r.ledger.State(it.ID) == ledger.Done {
				missing.Items = append(missing.Items, it.ID)
			}
		}
		return nil
	})
	if err != nil || len(missing.Items) == 0 {
		return err
	}
	r.log.Warn("results are missing from storage", "items", len(missing.Items))
	_, err = r.startRound(ctx, missing)
	return err
}
