package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"ddiff/coordinator/shard"
	"ddiff/storage"
)

const (
	// readParallel is the number of windows or parts that are read and decoded at a time.
	readParallel = 8
	// readChunk is the number of windows or parts that are in memory at a time.
	readChunk = 32
	// reserveItems limits the room that is made for the items of a window in advance.
	reserveItems = 8192
)

// noteWindow adds a stored window to the next part of windows. size is the size of its object.
func (r *runner) noteWindow(w *shard.Window, size int64) {
	if r.s.cfg.run != nil {
		return
	}
	noted := notedWindow{partWindow: partWindow{
		Number: w.Number, Item: w.Item, Items: w.Header.Items, Failures: len(w.Failed), Rows: w.Rows, Changed: w.Changed, Size: size,
	}}
	noted.entries = make([]partEntry, 0, w.Header.Items)
	for _, it := range w.Items {
		if k, ok := parseIdentity(it.ID); ok {
			noted.entries = append(noted.entries, partEntry{id: k})
		}
	}
	for _, f := range w.Failed {
		if k, ok := parseIdentity(f.Item.ID); ok {
			noted.entries = append(noted.entries, partEntry{id: k, state: failed, reason: trimReason(f.Reason)})
		}
	}
	if len(noted.entries) == w.Header.Items {
		r.checkpoint.windows = append(r.checkpoint.windows, noted)
	}
}

// foldWindows stores the identities of the windows that no part has.
func (r *runner) foldWindows(ctx context.Context) error {
	c := &r.checkpoint
	for chunk := range slices.Chunk(c.windows, foldWindows) {
		if len(chunk) < foldWindows {
			c.windows = slices.Clone(chunk)
			return nil
		}
		p := part{partHeader: partHeader{Campaign: r.id}}
		for _, w := range chunk {
			p.Windows = append(p.Windows, w.partWindow)
			p.entries = append(p.entries, w.entries...)
		}
		data, err := p.encode()
		if err != nil {
			return fmt.Errorf("encode ledger: %w", err)
		}
		key := windowPartKey(r.id, chunk[0].Number, chunk[len(chunk)-1].Number)
		if err := r.s.cfg.Store.Create(ctx, key, data); err != nil && !errors.Is(err, storage.ErrExists) {
			return fmt.Errorf("store ledger: %w", err)
		}
	}
	c.windows = nil
	return nil
}

// forgetWindow removes the parts that have a window, before the window is replaced.
func (r *runner) forgetWindow(ctx context.Context, number int) error {
	c := &r.checkpoint
	c.windows = slices.DeleteFunc(c.windows, func(w notedWindow) bool { return w.Number == number })
	for info, err := range r.s.cfg.Store.List(ctx, windowPartPrefix(r.id)) {
		if err != nil {
			return fmt.Errorf("list ledger: %w", err)
		}
		var first, last int
		_, err := fmt.Sscanf(strings.TrimPrefix(info.Key, windowPartPrefix(r.id)), "%d-%d", &first, &last)
		if err == nil && (number < first || number > last) {
			continue
		}
		if err := r.s.cfg.Store.Delete(ctx, info.Key); err != nil {
			return fmt.Errorf("remove ledger: %w", err)
		}
	}
	return nil
}

// eachPart reads the parts with a prefix, in the order of their keys, and calls f with each. It reads several at a time.
// It skips damaged ones.
func (r *runner) eachPart(ctx context.Context, prefix string, f func(key string, p *part)) error {
	var keys []string
	for info, err := range r.s.cfg.Store.List(ctx, prefix) {
		if err != nil {
			return fmt.Errorf("list ledger: %w", err)
		}
		keys = append(keys, info.Key)
	}
	for chunk := range slices.Chunk(keys, readChunk) {
		parts := make([]*part, len(chunk))
		group, inner := errgroup.WithContext(ctx)
		group.SetLimit(readParallel)
		for i, key := range chunk {
			group.Go(func() error {
				data, err := r.s.cfg.Store.Get(inner, key)
				switch {
				case errors.Is(err, storage.ErrNotFound): // it was removed meanwhile
					return nil
				case errors.Is(err, storage.ErrCorrupt):
				case err != nil:
					return fmt.Errorf("read ledger: %w", err)
				default:
					parts[i], err = decodePart(data, r.id)
				}
				if err != nil {
					r.log.Error("skipped a part of the ledger", "key", key, "reason", err)
				}
				return nil
			})
		}
		if err := group.Wait(); err != nil {
			return err
		}
		for i, p := range parts {
			if p != nil {
				f(chunk[i], p)
			}
		}
	}
	return nil
}

// restoreWindows adds the items of all stored windows to the ledger. It reads the last windows, which the sharder needs,
// and the others only if no part has them.
func (r *runner) restoreWindows(ctx context.Context) error {
	var stored []storage.Info
	for info, err := range r.s.cfg.Store.List(ctx, shard.Prefix(r.id)) {
		if err != nil {
			return fmt.Errorf("list windows: %w", err)
		}
		stored = append(stored, info)
	}
	known := make([]*partWindow, len(stored))
	// The record may be damaged: the number of its items is a hint only.
	r.ledger.reserve(min(max(r.rec.Items, 0), len(stored)*reserveItems))
	if r.s.cfg.run == nil && len(stored) > foldWindows {
		err := r.eachPart(ctx, windowPartPrefix(r.id), func(_ string, p *part) {
			entries := p.entries
			for _, w := range p.Windows {
				if w.Items < 0 || w.Items > len(entries) {
					return
				}
				if n := w.Number; n >= 0 && n < len(stored) && known[n] == nil && stored[n].Key == shard.Key(r.id, n) && stored[n].Size == w.Size {
					r.addEntries(entries[:w.Items])
					known[n] = &w
				}
				entries = entries[w.Items:]
			}
		})
		if err != nil {
			return err
		}
	}
	last := len(stored) // the first of the last windows
	for rows := 0; last > 0 && rows < shard.TailRows; {
		if last--; known[last] != nil {
			rows += known[last].Rows
		}
	}
	for begin := 0; begin < len(stored); begin += readChunk {
		if err := r.restoreChunk(ctx, begin, stored[begin:min(begin+readChunk, len(stored))], known, last); err != nil {
			return err
		}
	}
	return nil
}

// addEntries adds the items of a window from a part.
func (r *runner) addEntries(entries []partEntry) {
	for _, e := range entries {
		r.ledger.addIdentity(e.id)
		if e.state == failed {
			r.ledger.settleEntry(r.ledger.findIdentity(e.id), 0, failed, e.reason)
		}
	}
}

// restoreChunk adds consecutive windows to the ledger, from number begin. known are the windows that parts have added. It
// reads the others, and those from number last on.
func (r *runner) restoreChunk(ctx context.Context, begin int, stored []storage.Info, known []*partWindow, last int) error {
	windows := make([]*shard.Window, len(stored))
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(readParallel)
	for i, info := range stored {
		if known[begin+i] == nil || begin+i >= last {
			group.Go(func() (err error) {
				windows[i], err = r.readWindow(inner, info.Key)
				return err
			})
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i, info := range stored {
		w, k := windows[i], known[begin+i]
		if k == nil {
			k = &partWindow{Number: w.Number, Item: w.Item}
		}
		if k.Number != r.stored || k.Item != r.next.Item || (w != nil && (w.Campaign != r.id || w.Number != k.Number || w.Item != k.Item)) {
			return fmt.Errorf("stored window %d does not follow the previous window; remove %s, so that the dataset is read again",
				begin+i, shard.Prefix(r.id))
		}
		switch {
		case known[begin+i] == nil:
			r.addWindow(w)
			r.noteWindow(w, info.Size)
			continue
		case w != nil:
			r.next, r.complete = w.Next(r.next), w.Last
		default:
			r.next = shard.Position{Number: k.Number + 1, Item: k.Item + k.Items}
		}
		r.stored = k.Number + 1
		if r.sound < 0 && k.Items > k.Failures {
			r.sound = k.Number
		}
		if k.Changed != "" {
			r.warning = k.Changed
		}
	}
	return nil
}

// restoreOutcomes enters the outcomes of all parts into the ledger.
func (r *runner) restoreOutcomes(ctx context.Context) error {
	c := &r.checkpoint
	return r.eachPart(ctx, outcomePartPrefix(r.id), func(key string, p *part) {
		for _, e := range p.entries {
			r.ledger.settleEntry(r.ledger.findIdentity(e.id), e.round, e.state, e.reason)
		}
		if p.Seq >= c.stored || p.Stream != c.stream {
			c.stored, c.stream = p.Seq, p.Stream
		}
		r.seen = c.stored
		var number int
		if _, err := fmt.Sscanf(strings.TrimPrefix(key, outcomePartPrefix(r.id)), "%d", &number); err == nil {
			c.next = max(c.next, number+1)
		}
	})
}
