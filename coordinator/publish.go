package coordinator

import (
	"context"
	"iter"
	"slices"

	"go.opentelemetry.io/otel/trace"

	"ddiff/internal/coordinator/ledger"
	"ddiff/internal/coordinator/shard"
	"ddiff/internal/record"
	"ddiff/restore/item"
)

// openSharder creates the sharder. nextWindow starts to read.
func (r *runner) openSharder(context.Context) error {
	spec := r.rec.Spec // the sharder reads it beside a change of the budget
	cfg := r.reading
	cfg.Spec, cfg.Campaign, cfg.Prior, cfg.Catalogue = &spec, r.id, r.models.prior, r.models.catalogue
	cfg.Stored = func(ctx context.Context) iter.Seq2[*shard.Window, error] { return shard.All(ctx, r.s.cfg.Store, r.id) }
	sharder, err := shard.New(cfg)
	if err != nil {
		return err
	}
	r.reader.sharder, r.reader.windows = sharder, nil
	return nil
}

// nextWindow returns the channel of the next window, or nil while the campaign needs none.
func (r *runner) nextWindow(ctx context.Context) <-chan shardedWindow {
	if len(r.queue.unsent) > 0 || !r.standing().needsWindow() || !r.reader.may(r.outcomes.ledger.Open()) {
		if !r.rec.Released || r.rec.Wanted != record.WantRun {
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
	r.reader.ticked = false
	r.leftOut.read()
	w := sharded.window
	ctx, span := r.startWindowSpan(ctx, "shard", w)
	defer func() { endSpan(span, err) }()
	made := w
	if w, err = r.windows.create(ctx, made); err != nil {
		return err
	}
	if w != made {
		r.reader.stop()
	}
	for _, f := range w.Failed {
		r.log.Error("item cannot be restored", "item", f.Item.Name, "task", f.Item.Task, "reason", f.Reason)
	}
	fresh, repeated := r.outcomes.count(w)
	if w.Changed != "" {
		r.log.Warn("the dataset changed while it was read", "window", w.Number, "change", w.Changed)
	}
	if err := r.outcomes.watcher.windowRead(ctx, w, fresh, repeated); err != nil {
		return err
	}
	if err := r.starts.progress(ctx, r.windows.complete); err != nil {
		return err
	}
	if !r.rec.Released {
		return nil
	}
	return r.publishWindow(ctx, w, fresh)
}

// notePublished notes which windows the queue has had. Without a status that says so, as after a loss of the board, it takes all stored ones for
// published, and reports that the queue is to be compared.
func (r *runner) notePublished() (unknown bool) {
	w, known := &r.windows, r.status.last.Windows
	if known > w.stored {
		r.log.Warn("windows are missing from storage; the dataset is read again", "published", known, "stored", w.stored)
	}
	w.published = max(0, min(known, w.stored))
	unknown = r.rec.Released && w.published == 0 && w.stored > 0
	if unknown {
		w.published = w.stored
	}
	return unknown
}

// publishWindow publishes the pending items among those of a window, and then counts the window in the status.
func (r *runner) publishWindow(ctx context.Context, w *shard.Window, items []item.Item) (err error) {
	ctx, span := r.startWindowSpan(ctx, "publish", w, trace.WithSpanKind(trace.SpanKindProducer))
	defer func() { endSpan(span, err) }()
	if _, err := r.publish(ctx, items); err != nil {
		return err
	}
	r.windows.published = max(r.windows.published, w.Number+1)
	return r.publishStatus(ctx, r.status.last.Counts.Running)
}

// publishNextWindow publishes the first stored window that is not published.
func (r *runner) publishNextWindow(ctx context.Context) error {
	w, err := r.windows.read(ctx, r.windows.published)
	if err != nil {
		return err
	}
	if w.Number < r.windows.unverified {
		if err := r.outcomes.settleStored(ctx, &r.results, w.Items, r.rec); err != nil {
			return err
		}
	}
	return r.publishWindow(ctx, w, w.Items)
}

// republish publishes the pending items of the published windows that chosen returns true for, and returns their number.
func (r *runner) republish(ctx context.Context, chosen func(id string) bool) (n int, err error) {
	err = r.windows.each(ctx, func(w *shard.Window) error {
		if w.Number >= r.windows.published {
			return nil // not published yet
		}
		sent, err := r.publish(ctx, slices.DeleteFunc(w.Items, func(it item.Item) bool { return !chosen(it.ID) }))
		n += sent
		return err
	})
	return n, err
}

// publish publishes the pending items, see work.publish.
func (r *runner) publish(ctx context.Context, items []item.Item) (int, error) {
	return r.queue.publish(r.traced(ctx), items, r.pending, r.rec.Round)
}

func (r *runner) pending(id string) bool { return r.outcomes.ledger.State(id) == ledger.Pending }
