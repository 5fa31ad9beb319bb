package coordinator

import (
	"context"
	"slices"

	"go.opentelemetry.io/otel/trace"

	"ddiff/coordinator/ledger"
	"ddiff/coordinator/shard"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// publishWindow publishes the pending items among those of a window, and then counts the window in the record.
func (r *runner) publishWindow(ctx context.Context, w *shard.Window, items []item.Item) (err error) {
	ctx, span := r.startWindowSpan(ctx, "publish", w, trace.WithSpanKind(trace.SpanKindProducer))
	defer func() { endSpan(span, err) }()
	if _, err := r.publish(ctx, items); err != nil {
		return err
	}
	return r.save(ctx, func(c *manifest.Campaign) {
		c.Shards = max(c.Shards, w.Number+1)
		c.Rows, c.Items, c.Complete = max(c.Rows, w.Row+w.Rows), max(c.Items, w.Item+w.Header.Items), c.Complete || w.Last
	})
}

// publishNextWindow publishes the first stored window that is not published.
func (r *runner) publishNextWindow(ctx context.Context) error {
	w, err := r.windows.read(ctx, r.rec.Shards)
	if err != nil {
		return err
	}
	if w.Number < r.windows.unverified {
		if err := r.outcomes.settleStored(ctx, &r.results, w.Items, r.rec.Round); err != nil {
			return err
		}
	}
	return r.publishWindow(ctx, w, w.Items)
}

// republish publishes the pending items of the published windows that chosen returns true for, and returns their number.
func (r *runner) republish(ctx context.Context, chosen func(id string) bool) (n int, err error) {
	err = r.windows.each(ctx, func(w *shard.Window) error {
		if w.Number >= r.rec.Shards {
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
	return r.queue.publish(r.traced(ctx), items, func(id string) bool { return r.outcomes.ledger.State(id) == ledger.Pending }, r.rec.Round)
}
