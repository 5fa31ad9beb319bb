package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/trace"

	"ddiff/coordinator/ledger"
	"ddiff/coordinator/shard"
	"ddiff/manifest"
	"ddiff/queue"
)

// publishWindow publishes the pending items of a window and then counts the window in the record. include selects items by their
// index in the window; nil selects all.
func (r *runner) publishWindow(ctx context.Context, w *shard.Window, include func(i int) bool) (err error) {
	ctx, span := r.startWindowSpan(ctx, "publish", w, trace.WithSpanKind(trace.SpanKindProducer))
	defer func() { endSpan(span, err) }()
	if _, err := r.publish(ctx, w.Items, include); err != nil {
		return err
	}
	return r.save(ctx, func(c *manifest.Campaign) {
		c.Shards = max(c.Shards, w.Number+1)
		c.Rows, c.Items, c.Complete = max(c.Rows, w.Row+w.Rows), max(c.Items, w.Item+w.Header.Items), c.Complete || w.Last
	})
}

// publishNextWindow publishes the first stored window that is not published.
func (r *runner) publishNextWindow(ctx context.Context) error {
	w, err := r.readWindow(ctx, shard.Key(r.id, r.rec.Shards))
	if err != nil {
		return err
	}
	if w.Number < r.windows.unverified {
		if err := r.settleStored(ctx, w.Items, nil); err != nil {
			return err
		}
	}
	return r.publishWindow(ctx, w, nil)
}

// publish publishes the pending items that include selects by their index, nil all, and returns their number. Of several items with
// one identity it publishes one. Items that the queue has already are not an error.
func (r *runner) publish(ctx context.Context, items []manifest.Item, include func(i int) bool) (int, error) {
	var work []queue.Work
	chosen := map[string]bool{}
	for i, it := range items {
		if chosen[it.ID] || include != nil && !include(i) || r.ledger.State(it.ID) != ledger.Pending {
			continue
		}
		chosen[it.ID] = true
		data, err := json.Marshal(it)
		if err != nil {
			return 0, fmt.Errorf("publish item %s: %w", it.Name, err)
		}
		work = append(work, queue.Work{Class: shard.Class(it), ID: it.ID, Payload: manifest.EncodeItem(data), Round: r.rec.Round})
	}
	return len(work), r.send(ctx, work)
}

// send publishes work. Duplicates are not an error.
func (r *runner) send(ctx context.Context, work []queue.Work) error {
	if len(work) == 0 {
		return nil
	}
	if !trace.SpanContextFromContext(ctx).IsValid() { // items of a window have its span
		ctx = trace.ContextWithRemoteSpanContext(ctx, traceOf(r.rec))
	}
	err := r.queue.PublishBatch(ctx, work)
	var refused *queue.BatchError
	if !errors.As(err, &refused) {
		if err == nil {
			r.s.cfg.Metrics.Publish(ctx, len(work))
		}
		return err
	}
	r.s.cfg.Metrics.Publish(ctx, len(work)-len(refused.Refused))
	for _, f := range refused.Refused {
		if !errors.Is(f.Err, queue.ErrDuplicate) {
			return fmt.Errorf("publish %d items: %w", len(work), err)
		}
	}
	return nil
}
