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

// publishWindow publishes the pending items of a window and then counts the window in the record. encoded has the JSON
// of the items, or is nil. include selects items, all when it is empty.
func (r *runner) publishWindow(ctx context.Context, w *shard.Window, encoded [][]byte, include []bool) (err error) {
	ctx, span := r.startWindowSpan(ctx, "publish", w, trace.WithSpanKind(trace.SpanKindProducer))
	defer func() { endSpan(span, err) }()
	var batch batch
	for i, it := range w.Items {
		if len(include) > 0 && !include[i] {
			continue
		}
		var data []byte
		if encoded != nil {
			data = encoded[i]
		}
		if err := r.addWork(&batch, it, data); err != nil {
			return err
		}
	}
	if err := r.send(ctx, batch.work); err != nil {
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
	return r.publishWindow(ctx, w, nil, nil)
}

// publish publishes the pending items and returns their number. It skips the items that include is false for, and items
// that the queue has already are not an error.
func (r *runner) publish(ctx context.Context, items []manifest.Item, include func(it manifest.Item) bool) (int, error) {
	var batch batch
	for _, it := range items {
		if include != nil && !include(it) {
			continue
		}
		if err := r.addWork(&batch, it, nil); err != nil {
			return 0, err
		}
	}
	return len(batch.work), r.send(ctx, batch.work)
}

// batch is work to publish, each identity once.
type batch struct {
	work []queue.Work
	ids  map[string]bool
}

// addWork adds an item to a batch if its identity is pending. data is the item's JSON, or nil.
func (r *runner) addWork(b *batch, it manifest.Item, data []byte) error {
	if r.ledger.State(it.ID) != ledger.Pending || b.ids[it.ID] {
		return nil
	}
	if b.ids == nil {
		b.ids = map[string]bool{}
	}
	b.ids[it.ID] = true
	if data == nil {
		var err error
		if data, err = json.Marshal(it); err != nil {
			return fmt.Errorf("publish item %s: %w", it.Name, err)
		}
	}
	b.work = append(b.work, queue.Work{Class: shard.Class(it), ID: it.ID, Payload: manifest.EncodeItem(data), Round: r.rec.Round})
	return nil
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
