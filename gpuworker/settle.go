package gpuworker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/telemetry"
)

// settle turns the outcome of an attempt into what the queue is told. The result event goes
// out before the acknowledgement: a crash between the two repeats the event, never loses it.
// An error means that the queue itself cannot be reached.
func (w *Worker) settle(ctx context.Context, t *task, o outcome, res manifest.Result) error {
	if o.kind == released {
		w.leases.keep(t)
		return nil
	}
	// An item that was worked to its end is settled even while the worker drains.
	ctx = trace.ContextWithSpan(context.WithoutCancel(ctx), trace.SpanFromContext(t.ctx))
	defer w.leases.remove(t.lease)
	ctx, end := w.cfg.Instruments.Stage(ctx, w.cfg.Tracer, telemetry.StageSettle)
	err := w.tell(ctx, t, o, res)
	end(err)
	trace.SpanFromContext(t.ctx).End()
	if err != nil {
		return fmt.Errorf("settle item %s: %w", t.name(), err)
	}
	return nil
}

// giveBack returns the items that were released to the queue. It waits for the end of all
// stages: an item that goes back while this worker still pulls comes to this worker again,
// and would be lost to the others until its lease runs out.
func (w *Worker) giveBack(ctx context.Context) error {
	var errs error
	for _, t := range w.leases.kept() {
		ctx := trace.ContextWithSpan(context.WithoutCancel(ctx), trace.SpanFromContext(t.ctx))
		w.cfg.Logger.Info("gave item back", "item", t.name(), "task", t.item.Task, "attempt", t.lease.Attempt())
		if err := t.lease.Release(ctx); err != nil {
			errs = errors.Join(errs, fmt.Errorf("give item %s back: %w", t.name(), err))
		}
		trace.SpanFromContext(t.ctx).End()
	}
	return errs
}

func (w *Worker) tell(ctx context.Context, t *task, o outcome, res manifest.Result) error {
	log := w.cfg.Logger.With("item", t.name(), "task", t.item.Task, "attempt", t.lease.Attempt())
	switch o.kind {
	case retry:
		if !t.lease.Last() && !t.lease.Exhausted() {
			delay := t.lease.RetryDelay()
			log.Warn("will try item again", "after", delay, "reason", o.err)
			return t.lease.Retry(ctx, delay)
		}
		log.Error("gave item up", "reason", o.err)
		res = w.result(t, manifest.OutcomeDead, o.err.Error())
		if err := w.publish(ctx, t, res); err != nil {
			return err
		}
		return t.lease.Bury(ctx, queue.Dead{
			ID: t.lease.ID(), Reason: o.err.Error(), Attempts: t.lease.Attempt(),
			Worker: w.cfg.Name, TraceID: res.TraceID,
		})
	case failed:
		log.Error("item cannot be restored", "reason", o.err)
		res = w.result(t, manifest.OutcomeFailed, o.err.Error())
	case done:
		log.Info("restored item", "seconds", t.seconds)
	}
	if err := w.publish(ctx, t, res); err != nil {
		return err
	}
	return t.lease.Ack(ctx)
}

// publish sends the result event and counts it.
func (w *Worker) publish(ctx context.Context, t *task, res manifest.Result) error {
	data, err := json.Marshal(res)
	if err != nil {
		return err
	}
	if err := w.cfg.Queue.PublishResult(ctx, t.lease.ID(), data); err != nil {
		return err
	}
	attrs := metric.WithAttributes(telemetry.TaskKey.String(t.item.Task), telemetry.OutcomeKey.String(string(res.Outcome)))
	w.cfg.Instruments.Items.Add(ctx, 1, attrs)
	w.cfg.Instruments.ItemDuration.Record(ctx, w.cfg.Now().Sub(t.leased).Seconds(), attrs)
	return nil
}

// name is the item's name for people, or its id while it could not be read.
func (t *task) name() string {
	if t.item.Name != "" {
		return t.item.Name
	}
	return t.lease.ID()
}
