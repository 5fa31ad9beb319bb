package gpuworker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

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
	ctx, cancel := w.hurry(ctx)
	defer cancel()
	defer t.on.settled()
	defer w.leases.remove(t.lease)
	defer w.leases.begin(w.cfg.StageLimit)()
	ctx, end := w.cfg.Instruments.Stage(ctx, w.cfg.Tracer, telemetry.StageSettle)
	err := w.tell(ctx, t, o, res)
	end(err)
	trace.SpanFromContext(t.ctx).End()
	w.told.items.Add(1)
	if err == nil {
		return nil
	}
	return w.outlast(fmt.Errorf("settle item %s: %w", t.name(), err))
}

// lastWords is how long a worker that drains goes on to tell a queue that does not answer.
const lastWords = 10 * time.Second

// hurry bounds what is told to the queue while the worker drains.
func (w *Worker) hurry(ctx context.Context) (context.Context, context.CancelFunc) {
	if w.told.draining.Load() {
		return context.WithTimeout(ctx, lastWords)
	}
	return context.WithCancel(ctx)
}

// outlast passes over an error of the queue, if that is worth it: the lease of the item runs
// out, and whoever gets it next finds the result.
func (w *Worker) outlast(err error) error {
	if !w.cfg.Outlast || errors.Is(err, queue.ErrClosed) {
		return err
	}
	w.cfg.Logger.Warn("left an item to the end of its lease", "reason", err)
	return nil
}

// giveBack returns the items that were released to the queue. It waits for the end of all
// stages: an item that goes back while this worker still pulls comes to this worker again,
// and would be lost to the others until its lease runs out.
func (w *Worker) giveBack(ctx context.Context) error {
	var errs error
	ctx, cancel := w.hurry(context.WithoutCancel(ctx))
	defer cancel()
	defer w.leases.begin(w.cfg.StageLimit)()
	for _, t := range w.leases.kept() {
		ctx := trace.ContextWithSpan(ctx, trace.SpanFromContext(t.ctx))
		if err := w.returnOne(ctx, t); err != nil {
			errs = errors.Join(errs, w.outlast(fmt.Errorf("give item %s back: %w", t.name(), err)))
		}
		w.leases.remove(t.lease)
		trace.SpanFromContext(t.ctx).End()
		t.on.settled()
	}
	return errs
}

// returnOne gives one item back. One that was handed out before may have been finished by
// somebody else meanwhile, and is not put into the queue again.
func (w *Worker) returnOne(ctx context.Context, t *task) error {
	if t.on.cancelled() {
		return t.lease.Ack(ctx)
	}
	if t.lease.Attempt() > 1 && t.item.ID != "" {
		if _, err := t.existing(ctx); err == nil {
			return t.lease.Ack(ctx)
		}
	}
	w.log(t).Info("gave item back")
	return t.lease.Release(ctx)
}

// log is the logger of an item.
func (w *Worker) log(t *task) *slog.Logger {
	return w.cfg.Logger.With("item", t.name(), "task", t.item.Task, "attempt", t.lease.Attempt())
}

func (w *Worker) tell(ctx context.Context, t *task, o outcome, res manifest.Result) error {
	log := w.log(t)
	switch o.kind {
	case retry:
		if !t.lease.Last() && !t.lease.Exhausted() {
			delay := t.lease.RetryDelay()
			log.Warn("will try item again", "after", delay, "reason", o.err)
			return t.lease.Retry(ctx, delay)
		}
		log.Error("gave item up", "reason", o.err)
		return w.bury(ctx, t, o.err)
	case failed:
		log.Error("item cannot be restored", "reason", o.err)
		res = w.result(t, manifest.OutcomeFailed, o.err.Error())
	case cancelled:
		log.Info("stopped at an item of a cancelled campaign")
		if err := t.lease.Ack(ctx); err != nil {
			// Its queue is mostly gone by now.
			log.Debug("could not take the item out of the queue", "reason", err)
		}
		return nil
	case done:
		if t.checked != nil {
			if err := w.publishChecked(ctx, t, *t.checked); err != nil {
				return err
			}
			return t.lease.Ack(ctx)
		}
		log.Info("restored item", "seconds", t.seconds)
	}
	if err := w.publish(ctx, t, res); err != nil {
		return err
	}
	return t.lease.Ack(ctx)
}

// bury gives an item up.
func (w *Worker) bury(ctx context.Context, t *task, reason error) error {
	res := w.result(t, manifest.OutcomeDead, reason.Error())
	var err error
	if t.lease.Class() == manifest.ClassPreflight {
		err = w.publishChecked(ctx, t, manifest.Checked{Worker: w.cfg.Name, Failed: manifest.ClassPreflight, Reason: reason.Error()})
	} else {
		err = w.publish(ctx, t, res)
	}
	if err != nil {
		return err
	}
	dead := queue.Dead{
		ID: t.lease.ID(), Reason: reason.Error(), Attempts: t.lease.Attempt(),
		Worker: w.cfg.Name, TraceID: res.TraceID,
	}
	if w.cfg.Log != nil {
		dead.Log = w.cfg.Log.Lines(t.name())
	}
	return t.lease.Bury(ctx, dead)
}

// publish sends the result event and counts it.
func (w *Worker) publish(ctx context.Context, t *task, res manifest.Result) error {
	data, err := json.Marshal(res)
	if err != nil {
		return err
	}
	if err := t.lease.PublishResult(ctx, data); err != nil {
		return err
	}
	attrs := metric.WithAttributes(telemetry.TaskKey.String(t.item.Task), telemetry.OutcomeKey.String(string(res.Outcome)))
	w.cfg.Instruments.Items.Add(ctx, 1, attrs)
	w.cfg.Instruments.ItemDuration.Record(ctx, w.cfg.Now().Sub(t.leased).Seconds(), attrs)
	return nil
}

// publishChecked sends the answer to a preflight.
func (w *Worker) publishChecked(ctx context.Context, t *task, c manifest.Checked) error {
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return t.lease.PublishResult(ctx, data)
}

// name is the item's name for people, or its id while it could not be read.
func (t *task) name() string {
	if t.item.Name != "" {
		return t.item.Name
	}
	return t.lease.ID()
}
