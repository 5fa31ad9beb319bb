package gpuworker

import (
	"cmp"
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/restore/item"
	"ddiff/telemetry"
)

// errCrashed is the reason for burying a preflight without an attempt.
var errCrashed = errors.New("earlier attempts ended without an answer: the worker crashed or hung")

// start opens the item's own trace, linked to the trace that published it. Draining does not cancel the task's context:
// computed results are written.
func (w *Worker) start(ctx context.Context, a *assigned, l *queue.Lease) *task {
	ctx = context.WithoutCancel(ctx)
	link := trace.LinkFromContext(l.Context(context.Background()))
	attributes := append(l.Attributes(),
		telemetry.SpanCampaignKey.String(a.Campaign), telemetry.SpanItemKey.String(l.ID()), telemetry.SpanAttemptKey.Int(l.Attempt()),
		telemetry.SpanWorkerKey.String(w.cfg.Name))
	if a.Engine != nil {
		attributes = append(attributes, telemetry.SpanDeviceKey.String(cmp.Or(a.Engine.Runtime().Device(), a.Engine.Runtime().Provider())))
	}
	ctx, _ = w.cfg.Tracer.Start(ctx, "process item", trace.WithNewRoot(), trace.WithLinks(link),
		trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(attributes...))
	if l.Attempt() > 1 {
		w.cfg.Instruments.Redeliveries.Add(ctx, 1)
	}
	return &task{lease: l, assigned: a, ctx: ctx, leased: w.cfg.Now()}
}

// prepare decodes the message of an item and loads the item. It returns the item's result if there is one.
func (w *Worker) prepare(ctx context.Context, t *task) (*item.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if t.assigned.cancelled() {
		return nil, errCancelled
	}
	if w.breaker.Circuit("") != nil {
		return nil, errSuspended
	}
	if t.lease.Class() == record.ClassPreflight {
		return nil, t.decodePreflight()
	}
	if err := t.decode(); err != nil {
		return nil, err
	}
	trace.SpanFromContext(t.ctx).SetAttributes(
		telemetry.SpanCampaignKey.String(t.Item.Campaign), attribute.String("ddiff.task", t.Item.Task),
		attribute.String("ddiff.image", t.Item.Name), attribute.Int("ddiff.run", t.Item.Run))
	w.log(t).Info("leased item")
	return w.restorer.prepare(ctx, t)
}

// fetch runs the fetch stage of an item. It returns the result of an earlier attempt, or of another campaign with the
// same output, if there is one: an item that is published again costs one read. Otherwise it calls load.
func (c *core) fetch(ctx context.Context, t *task, load func(ctx context.Context) error) (res *item.Result, err error) {
	err = c.stage(t, telemetry.StageFetch, c.cfg.Limits.Prepare, func(traced context.Context) error {
		// Draining and the cancellation of the campaign interrupt reading.
		traced, stop := t.assigned.withLifetime(traced)
		defer stop()
		defer context.AfterFunc(ctx, stop)()
		var err error
		switch res, err = t.findResult(traced); {
		case err != nil || res != nil:
		default:
			if err = c.recordStart(traced, t); err == nil {
				err = load(traced)
			}
		}
		if err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
		return err
	})
	return res, err
}

// engineRestorer computes with the engine of the assignment.
type engineRestorer struct{ *core }

// prepare reads the item's files and checkpoint, and measures.
func (e engineRestorer) prepare(ctx context.Context, t *task) (*item.Result, error) {
	res, err := e.fetch(ctx, t, func(ctx context.Context) error {
		if err := t.assigned.loader.Plan(&t.Job); err != nil {
			return err
		}
		return errors.Join(t.assigned.loader.Fetch(ctx, &t.Job), e.loadCheckpoint(ctx, t))
	})
	if err != nil || res != nil {
		return res, err
	}
	err = e.stage(t, telemetry.StageMeasure, e.cfg.Limits.Prepare, func(ctx context.Context) error { return t.assigned.loader.Measure(ctx, &t.Job) })
	if err == nil {
		e.recordStage(t.ctx, t, telemetry.StageRestore)
	}
	return nil, err
}
