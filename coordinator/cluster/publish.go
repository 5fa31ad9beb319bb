package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"ddiff/coordinator/shard"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/storage"
)

// wantsWindow tells whether the next window may be stored: the first one at once, for the
// preflight, the others when everything before them is published.
func (r *runner) wantsWindow() bool {
	if r.whole || r.rec.Wanted != manifest.WantRun {
		return false
	}
	return r.stored == 0 || (r.rec.Phase == manifest.PhaseRunning && r.rec.Shards == r.stored)
}

// keep stores a window, create-only, and publishes it when the campaign is released. The
// window in storage counts: another coordinator may have been quicker.
func (r *runner) keep(ctx context.Context, m made) error {
	if m.err != nil {
		if theirFault(m.err) {
			return rejection{m.err}
		}
		return m.err
	}
	w := m.window
	data, items, err := w.Encode()
	if err != nil {
		return err
	}
	key := shard.Key(r.id, w.Number)
	err = r.s.cfg.Store.Create(ctx, key, data)
	if errors.Is(err, storage.ErrExists) {
		if w, err = r.window(ctx, key); err != nil {
			return err
		}
		if w.Campaign != r.id || w.Number != r.stored || w.Item != r.next.Item {
			return fmt.Errorf("window %d in storage does not follow the one before it", r.stored)
		}
		items = nil
	} else if err != nil {
		return fmt.Errorf("store window %d: %w", w.Number, err)
	}
	r.expect(w)
	if !r.rec.Released {
		return nil
	}
	return r.release(ctx, w, items)
}

// release publishes a window and moves the cursor behind it.
func (r *runner) release(ctx context.Context, w *shard.Window, items [][]byte) error {
	if _, err := r.publish(ctx, w.Items, items); err != nil {
		return err
	}
	return r.save(ctx, func(c *manifest.Campaign) {
		c.Shards = max(c.Shards, w.Number+1)
		c.Rows, c.Items, c.Complete = max(c.Rows, w.Row+w.Rows), max(c.Items, w.Item+w.Header.Items), c.Complete || w.Last
	})
}

// publish sends those items to the queue that are pending, each identity once, and returns
// their number. Items that the queue has already are no error. encoded are the items' JSON,
// or nil.
func (r *runner) publish(ctx context.Context, items []manifest.Item, encoded [][]byte) (int, error) {
	var batch []queue.Work
	sent := map[string]bool{}
	for i, it := range items {
		if r.ledger.state(it.ID) != pending || sent[it.ID] {
			continue
		}
		sent[it.ID] = true
		var data []byte
		if encoded != nil {
			data = encoded[i]
		} else {
			var err error
			if data, err = json.Marshal(it); err != nil {
				return 0, fmt.Errorf("publish item %s: %w", it.Name, err)
			}
		}
		batch = append(batch, queue.Work{Class: shard.Class(it), ID: it.ID, Payload: data, Round: r.rec.Round})
	}
	return len(batch), r.send(ctx, batch)
}

func (r *runner) send(ctx context.Context, batch []queue.Work) error {
	if len(batch) == 0 {
		return nil
	}
	err := r.queue.PublishBatch(ctx, batch)
	var refused *queue.BatchError
	if !errors.As(err, &refused) {
		return err
	}
	for _, f := range refused.Refused {
		if !errors.Is(f.Err, queue.ErrDuplicate) {
			return fmt.Errorf("publish %d items: %w", len(batch), err)
		}
	}
	return nil
}

// releaseNext publishes the first window that is in storage only.
func (r *runner) releaseNext(ctx context.Context) error {
	w, err := r.window(ctx, shard.Key(r.id, r.rec.Shards))
	if err != nil {
		return err
	}
	if w.Number < r.doubtful {
		if err := r.findEach(ctx, w.Items); err != nil {
			return err
		}
	}
	return r.release(ctx, w, nil)
}

// findEach settles the items of a window that have a result in storage, asking for each.
func (r *runner) findEach(ctx context.Context, items []manifest.Item) error {
	found := make([]bool, len(items))
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for i, it := range items {
		if r.ledger.state(it.ID) != pending {
			continue
		}
		group.Go(func() error {
			_, err := r.results.Stat(inner, manifest.ItemKey(it.ID, manifest.FileResult))
			found[i] = err == nil
			if errors.Is(err, storage.ErrNotFound) {
				return nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("look for results: %w", err)
	}
	for i, ok := range found {
		if ok {
			r.ledger.settle(items[i].ID, r.rec.Round, done, "")
		}
	}
	return nil
}

// find settles all items that have a result in storage, by one listing.
func (r *runner) find(ctx context.Context) error {
	return r.eachResult(ctx, func(id string) { r.ledger.settle(id, r.rec.Round, done, "") })
}

// eachResult calls f with the identity of each result in storage.
func (r *runner) eachResult(ctx context.Context, f func(id string)) error {
	const folder = "items/"
	for info, err := range r.results.List(ctx, folder) {
		if err != nil {
			return fmt.Errorf("list results: %w", err)
		}
		id, file, _ := strings.Cut(strings.TrimPrefix(info.Key, folder), "/")
		if file == manifest.FileResult {
			f(id)
		}
	}
	return nil
}

// findGone takes back that items are done whose results somebody has removed from storage.
func (r *runner) findGone(ctx context.Context) error {
	there := map[identity]bool{}
	if err := r.eachResult(ctx, func(id string) {
		if k, ok := parseIdentity(id); ok {
			there[k] = true
		}
	}); err != nil {
		return err
	}
	gone := round{Schema: manifest.RecordSchema, Round: r.rec.Round + 1, Gone: true}
	err := r.each(ctx, func(w *shard.Window) error {
		for _, it := range w.Items {
			if k, ok := parseIdentity(it.ID); ok && !there[k] && r.ledger.state(it.ID) == done {
				gone.Items = append(gone.Items, it.ID)
			}
		}
		return nil
	})
	if err != nil || len(gone.Items) == 0 {
		return err
	}
	r.log.Warn("results are gone from storage", "items", len(gone.Items))
	if err := r.storeRound(ctx, gone); err != nil {
		return err
	}
	if err := r.save(ctx, func(c *manifest.Campaign) { c.Round = gone.Round }); err != nil {
		return err
	}
	for _, id := range gone.Items {
		r.ledger.lose(id, gone.Round)
	}
	return nil
}

// reconcile compares the manifest with the results in storage and publishes the difference,
// in place of whatever the queue holds. It returns the number of items that it published.
func (r *runner) reconcile(ctx context.Context) (int, error) {
	if err := r.queue.Drop(ctx); err != nil {
		return 0, fmt.Errorf("drop work: %w", err)
	}
	if err := r.find(ctx); err != nil {
		return 0, err
	}
	// Opened anew, the queue knows nothing of what was published before.
	if err := r.openQueue(ctx); err != nil {
		return 0, err
	}
	n := 0
	err := r.each(ctx, func(w *shard.Window) error {
		if w.Number >= r.rec.Shards {
			return nil // it was not published yet
		}
		sent, err := r.publish(ctx, w.Items, nil)
		n += sent
		return err
	})
	r.stalled = r.s.cfg.Now()
	return n, err
}
