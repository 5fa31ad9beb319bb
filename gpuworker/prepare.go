package gpuworker

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/storage"
	"ddiff/telemetry"
)

// errCrashed is why an item is given up unseen.
var errCrashed = errors.New("earlier attempts ended without an answer: the worker crashed or hung")

// pause waits for d or the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// start opens the item's own trace, linked to the one that published it. Draining does not
// cancel its context: what was computed is written.
func (w *Worker) start(ctx context.Context, on *assigned, l *queue.Lease) *task {
	ctx = context.WithoutCancel(ctx)
	link := trace.LinkFromContext(l.Context(context.Background()))
	ctx, _ = w.cfg.Tracer.Start(ctx, "process item", trace.WithNewRoot(), trace.WithLinks(link),
		trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithAttributes(attribute.String("ddiff.item.id", l.ID()), attribute.Int("ddiff.attempt", l.Attempt())))
	if l.Attempt() > 1 {
		w.cfg.Instruments.Redeliveries.Add(ctx, 1)
	}
	return &task{lease: l, on: on, ctx: ctx, leased: w.cfg.Now()}
}

// ready takes an item up to the point where the device is needed, or gives the result that
// it has already.
func (w *Worker) ready(ctx context.Context, t *task) (*manifest.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if t.on.cancelled() {
		return nil, errCancelled
	}
	if t.lease.Class() == manifest.ClassPreflight {
		return nil, t.decodePreflight()
	}
	if err := t.decode(); err != nil {
		return nil, err
	}
	trace.SpanFromContext(t.ctx).SetAttributes(
		attribute.String("ddiff.campaign", t.item.Campaign), attribute.String("ddiff.task", t.item.Task),
		attribute.String("ddiff.image", t.item.Name), attribute.Int("ddiff.run", t.item.Run))
	var res *manifest.Result
	err := w.stage(t, telemetry.StageFetch, func(traced context.Context) error {
		// Reading is given up when the worker drains or the campaign is cancelled.
		traced, stop := t.on.until(traced)
		defer stop()
		defer context.AfterFunc(ctx, stop)()
		var err error
		if res, err = w.found(traced, t); err == nil && res == nil {
			err = w.begin(traced, t)
		}
		if err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
		return err
	})
	if err != nil || res != nil || w.cfg.Simulate != nil {
		return res, err
	}
	return nil, w.stage(t, telemetry.StageMeasure, func(ctx context.Context) error { return t.on.measure(ctx, t) })
}

// found reads the result that an earlier attempt wrote, or another campaign with the same
// output; nil when there is none. So an item that is published again costs one read.
func (w *Worker) found(ctx context.Context, t *task) (*manifest.Result, error) {
	res, err := t.existing(ctx)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &res, nil
}

// begin reads the item's files and its checkpoint.
func (w *Worker) begin(ctx context.Context, t *task) error {
	if t.lease.Exhausted() {
		return errCrashed
	}
	if w.cfg.Simulate != nil {
		return nil
	}
	if err := t.on.plan(t); err != nil {
		return err
	}
	return errors.Join(t.on.fetch(ctx, t), w.loadCheckpoint(ctx, t))
}
