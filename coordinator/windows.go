package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ddiff/coordinator/health"
	"ddiff/coordinator/ledger"
	"ddiff/coordinator/shard"
	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/storage"
)

// windows is the sequence of windows in storage.
type windows struct {
	stored     int              // number of windows
	next       shard.Position   // where the next window begins
	complete   bool             // the last window is in storage
	sound      int              // number of the first window with items, -1 without one
	unverified int              // items of windows below this number may have stored results
	warning    string           // how the dataset has changed, for the status
	failures   map[int]failures // items that cannot be restored, by window
}

// failures are items of a window that cannot be restored, with the reason of the first.
type failures struct {
	items  int
	reason string
}

// noteFailures notes the items of a window that cannot be restored.
func (s *windows) noteFailures(w *shard.Window) {
	if s.failures == nil {
		s.failures = map[int]failures{}
	}
	if delete(s.failures, w.Number); len(w.Failed) > 0 {
		s.failures[w.Number] = failures{len(w.Failed), w.Failed[0].Reason}
	}
}

// describe returns the warning of the status: how the dataset has changed, and why items cannot be restored.
func (s *windows) describe() string {
	n, reason := 0, ""
	for _, number := range slices.Sorted(maps.Keys(s.failures)) {
		n += s.failures[number].items
		reason = cmp.Or(reason, s.failures[number].reason)
	}
	if n == 0 {
		return s.warning
	}
	text := fmt.Sprintf("%d items cannot be restored, the first: %s", n, reason)
	return strings.Trim(s.warning+"; "+text, "; ")
}

// add adds the next window.
func (s *windows) add(w *shard.Window) {
	s.stored, s.next, s.complete = w.Number+1, w.Next(s.next), w.Last
	if s.sound < 0 && len(w.Items) > 0 {
		s.sound = w.Number
	}
	if w.Changed != "" {
		s.warning = w.Changed
	}
	s.noteFailures(w)
}

// openSharder creates the sharder. nextWindow starts to read.
func (r *runner) openSharder(context.Context) error {
	spec := r.rec.Spec // the sharder reads it beside a change of the budget
	cfg := r.reading
	cfg.Spec, cfg.Prior, cfg.Catalogue = &spec, r.models.prior, r.models.catalogue
	sharder, err := shard.New(cfg)
	if err != nil {
		return err
	}
	r.reader.sharder, r.reader.windows = sharder, nil
	return nil
}

// nextWindow returns the channel of the next window, or nil while the campaign needs none.
func (r *runner) nextWindow(ctx context.Context) <-chan shardedWindow {
	if !r.standing().needsWindow() || r.ledger.Open() > r.readAhead && !r.ticked {
		if !r.rec.Released || r.rec.Wanted != manifest.WantRun {
			r.reader.stop() // a campaign that is paused or waits for its preflight has no window in memory
		}
		return nil
	}
	// The first window is made alone, because a campaign then waits for its preflight.
	r.reader.start(ctx, r.windows.next, r.rec.Released || r.windows.stored > 0)
	return r.reader.windows
}

// storeWindow stores a window and, if the campaign is released, publishes it. If the store has the window already,
// because a second coordinator leads, the stored window is used.
func (r *runner) storeWindow(ctx context.Context, sharded shardedWindow) (err error) {
	if sharded.err != nil {
		if shard.IsDatasetError(sharded.err) {
			return rejection{sharded.err}
		}
		return sharded.err
	}
	r.ticked = false
	w := sharded.window
	ctx, span := r.startWindowSpan(ctx, "shard", w)
	defer func() { endSpan(span, err) }()
	data, err := w.Encode()
	if err != nil {
		return err
	}
	key := shard.Key(r.id, w.Number)
	err = r.s.cfg.Store.Create(ctx, key, data)
	if errors.Is(err, storage.ErrExists) {
		r.reader.stop() // the stored window may have other rows, if the dataset has changed
		if w, err = r.readWindow(ctx, key); err != nil {
			return err
		}
		if !r.follows(w) {
			return fmt.Errorf("stored window %d does not follow the previous window", r.windows.stored)
		}
	} else if err != nil {
		return fmt.Errorf("store window %d: %w", w.Number, err)
	}
	for _, f := range w.Failed {
		r.log.Error("item cannot be restored", "item", f.Item.Name, "task", f.Item.Task, "reason", f.Reason)
	}
	fresh, repeated := r.addWindow(w)
	if w.Changed != "" {
		r.log.Warn("the dataset changed while it was read", "window", w.Number, "change", w.Changed)
	}
	if err := r.watcher.windowRead(ctx, w, fresh, repeated); err != nil {
		return err
	}
	if err := r.noteProgress(ctx, r.windows.complete); err != nil {
		return err
	}
	if !r.rec.Released {
		return nil
	}
	return r.publishWindow(ctx, w, fresh)
}

// addWindow adds a stored window to the ledger. It returns the items with a new identity, and the others, which are published already.
func (r *runner) addWindow(w *shard.Window) (fresh, repeated []item.Item) {
	r.windows.add(w)
	return r.countItems(w)
}

// countItems adds the items of a window to the ledger.
func (r *runner) countItems(w *shard.Window) (fresh, repeated []item.Item) {
	for _, it := range w.Items {
		if r.ledger.Add(it.ID) {
			fresh = append(fresh, it)
		} else {
			repeated = append(repeated, it)
		}
	}
	for _, f := range w.Failed {
		r.ledger.Add(f.Item.ID)
		r.ledger.Settle(f.Item.ID, 0, ledger.Failed, f.Reason)
	}
	return fresh, repeated
}

// restoreLedger rebuilds the ledger from the stored windows, rounds and outcomes.
func (r *runner) restoreLedger(ctx context.Context) error {
	r.windows = windows{sound: -1}
	if err := r.restoreWindows(ctx); err != nil {
		return err
	}
	r.windows.unverified = r.windows.stored
	if err := r.countWindows(ctx); err != nil {
		return err
	}
	if err := r.restoreRounds(ctx); err != nil {
		return err
	}
	var err error
	r.outcomes.seen, err = r.parts.Enter(ctx, r.ledger)
	return err
}

// openParts prepares the stored parts of the ledger.
func (r *runner) openParts(context.Context) error {
	r.parts = ledger.NewParts(ledger.PartsConfig{
		Store: r.s.cfg.Store, Campaign: r.id, Fold: r.s.cfg.Fold, Relief: health.StreamTicks * r.s.cfg.Tick, Now: r.s.cfg.Now, Logger: r.log,
		Purge: func(ctx context.Context, through uint64) error { return r.queue.PurgeResults(ctx, through) },
	})
	return nil
}

// countWindows corrects a record that counts windows which are not in storage: somebody has removed them, and the sharder
// makes them again.
func (r *runner) countWindows(ctx context.Context) error {
	if r.rec.Shards <= r.windows.stored {
		return nil
	}
	r.log.Warn("windows are missing from storage; the dataset is read again", "published", r.rec.Shards, "stored", r.windows.stored)
	return r.save(ctx, func(c *manifest.Campaign) {
		c.Shards, c.Rows, c.Items, c.Complete = r.windows.stored, r.windows.next.Row, r.windows.next.Item, r.windows.complete
	})
}

// errMissingWindows: windows are missing from storage. The campaign is opened again, and reads the dataset again.
var errMissingWindows = errors.New("windows are missing from the store")

// eachWindow calls f with the stored windows in order. It returns errMissingWindows if the ledger has items of windows that
// are no longer in storage.
func (r *runner) eachWindow(ctx context.Context, f func(w *shard.Window) error) error {
	found := 0
	for w, err := range shard.All(ctx, r.s.cfg.Store, r.id) {
		if err != nil {
			return err
		}
		if err := f(w); err != nil {
			return err
		}
		found++
	}
	if found < r.windows.stored {
		return fmt.Errorf("%w: %d of %d", errMissingWindows, r.windows.stored-found, r.windows.stored)
	}
	return nil
}

func (r *runner) readWindow(ctx context.Context, key string) (*shard.Window, error) {
	return shard.Read(ctx, r.s.cfg.Store, key)
}

// restoreWindows adds the items of all stored windows to the ledger.
func (r *runner) restoreWindows(ctx context.Context) error {
	for w, err := range shard.All(ctx, r.s.cfg.Store, r.id) {
		if err != nil {
			return err
		}
		if !r.follows(w) {
			return fmt.Errorf("stored window %d does not follow the previous window; remove %s, so that the dataset is read again",
				r.windows.stored, shard.Prefix(r.id))
		}
		r.addWindow(w)
	}
	return nil
}

// follows reports whether a stored window is the next one.
func (r *runner) follows(w *shard.Window) bool {
	return w.Campaign == r.id && w.Number == r.windows.stored && w.Item == r.windows.next.Item
}
