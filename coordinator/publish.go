package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"go.opentelemetry.io/otel/trace"

	"ddiff/coordinator/ledger"
	"ddiff/coordinator/shard"
	"ddiff/manifest"
	"ddiff/queue"
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
		if err := r.settleStored(ctx, w.Items); err != nil {
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

// publish publishes the pending items, and returns their number. Of several items with one identity it publishes one. Items that the
// queue has already are not an error.
func (r *runner) publish(ctx context.Context, items []item.Item) (int, error) {
	var work []queue.Work
	chosen := map[string]bool{}
	for _, it := range items {
		if chosen[it.ID] || r.ledger.State(it.ID) != ledger.Pending {
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
