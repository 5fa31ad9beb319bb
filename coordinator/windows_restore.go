package coordinator

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"ddiff/coordinator/ledger"
	"ddiff/coordinator/shard"
	"ddiff/storage"
)

const (
	// readParallel is the number of windows that are read and decoded at a time, readChunk the number in memory.
	readParallel = 8
	readChunk    = 32
	// reserveItems limits the room that is made for the items of a window in advance.
	reserveItems = 8192
)

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
	// The record may be damaged: the number of its items is a hint only.
	r.ledger.Reserve(min(max(r.rec.Items, 0), len(stored)*reserveItems))
	known, err := r.parts.EnterWindows(ctx, r.ledger, stored)
	if err != nil {
		return err
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

// restoreChunk adds consecutive windows to the ledger, from number begin. known are the windows that parts have added. It
// reads the others, and those from number last on.
func (r *runner) restoreChunk(ctx context.Context, begin int, stored []storage.Info, known []*ledger.Window, last int) error {
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
			k = &ledger.Window{Number: w.Number, Item: w.Item}
		}
		if k.Number != r.windows.stored || k.Item != r.windows.next.Item || (w != nil && (w.Campaign != r.id || w.Number != k.Number || w.Item != k.Item)) {
			return fmt.Errorf("stored window %d does not follow the previous window; remove %s, so that the dataset is read again",
				begin+i, shard.Prefix(r.id))
		}
		if known[begin+i] != nil {
			r.windows.addKnown(k, w)
			continue
		}
		r.addWindow(w)
		r.parts.NoteWindow(w, info.Size)
	}
	return nil
}
