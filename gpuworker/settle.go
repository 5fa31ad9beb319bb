package gpuworker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/errgroup"

	"ddiff/gpuworker/guard"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/restore/item"
	"ddiff/restore/job"
	"ddiff/restore/onnx/onnxruntime"
	"ddiff/storage"
	"ddiff/telemetry"
)

// shutdownTimeout bounds calls of the queue while the worker drains.
const shutdownTimeout = 10 * time.Second

// settle reports the outcome of an attempt to the queue; res is the result of an item that is done. The result event is
// published before the acknowledgement: a crash between the two repeats the event and never loses it. An error means
// that the queue is unavailable.
func (w *Worker) settle(ctx context.Context, t *task, o outcome, res *item.Result) error {
	if o.kind == released { // by releaseAll
		return nil
	}
	// A finished item is settled even while the worker drains.
	ctx, cancel := w.shutdownContext(trace.ContextWithSpan(context.WithoutCancel(ctx), trace.SpanFromContext(t.ctx)))
	defer cancel()
	a := w.watchdog.Begin(ctx, telemetry.StageSettle, w.cfg.Limits.Finish, t)
	defer a.End()
	ctx, end := w.cfg.Instruments.Stage(a.Ctx, w.cfg.Tracer, telemetry.StageSettle)
	w.describe(t, o)
	err := w.report(ctx, t, o, res)
	end(err, storage.Class(err))
	w.stats.settled.Add(1)
	w.end(t)
	return w.ignoreTransient("settle", t, err)
}

// describe adds the outcome of an attempt to the item's span. Only done and the outcomes without a fault are no errors.
func (w *Worker) describe(t *task, o outcome) {
	span := trace.SpanFromContext(t.ctx)
	span.SetAttributes(attribute.String("ddiff.outcome", o.kind.String()))
	switch o.kind {
	case faulted, disputed, retried, refused, failed:
		span.SetStatus(codes.Error, o.err.Error())
		span.SetAttributes(telemetry.ErrorKey.String(o.kind.String()))
	}
}

// end ends the lease and the trace of an item.
func (w *Worker) end(t *task) {
	trace.SpanFromContext(t.ctx).End()
	w.leases.remove(t)
	t.assigned.settled()
	select {
	case w.settled <- struct{}{}:
	default:
	}
}

// shutdownContext limits ctx to shutdownTimeout while the worker drains.
func (w *Worker) shutdownContext(ctx context.Context) (context.Context, context.CancelFunc) {
	if w.stats.draining.Load() {
		return context.WithTimeout(ctx, shutdownTimeout)
	}
	return context.WithCancel(ctx)
}

// ignoreTransient logs a tolerated error of the queue and returns nil: the lease of the item expires, and the next
// worker finds the result. It returns other errors.
func (w *Worker) ignoreTransient(action string, t *task, err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s item %s: %w", action, t.name(), err)
	if !w.cfg.TolerateQueueErrors || errors.Is(err, queue.ErrClosed) {
		return err
	}
	w.cfg.Logger.Warn("left an item to the expiry of its lease", "reason", err)
	return nil
}

// releaseAll returns the items that are not settled to the queue, after all stages have ended. If an item returned while this worker
// still leases, this worker would lease it again and hold it until the lease expires.
func (w *Worker) releaseAll(ctx context.Context) error {
	ctx, cancel := w.shutdownContext(context.WithoutCancel(ctx))
	defer cancel()
	a := w.watchdog.Begin(ctx, "release", w.cfg.Limits.Finish)
	defer a.End()
	return inParallel(w.leases.unsettled(), func(t *task) error {
		o := outcome{kind: released}
		if t.fault != nil {
			o = outcome{faulted, t.fault}
		}
		w.describe(t, o)
		err := w.releaseItem(trace.ContextWithSpan(a.Ctx, trace.SpanFromContext(t.ctx)), t)
		w.end(t)
		return w.ignoreTransient("release", t, err)
	})
}

// releaseItem returns one item to the queue. It drops an item of a cancelled campaign, and a redelivered item that
// another worker has finished in the meantime.
func (w *Worker) releaseItem(ctx context.Context, t *task) error {
	if t.assigned.cancelled() {
		return t.lease.Ack(ctx)
	}
	if t.lease.Attempt() > 1 && t.Item.ID != "" {
		// The other worker may have died before it published its outcome.
		if res, err := t.readResult(ctx); err == nil {
			if err := w.publishResult(ctx, t, res); err != nil {
				return err
			}
			return t.lease.Ack(ctx)
		}
	}
	if t.fault != nil {
		return w.releaseFaulted(ctx, t, t.fault, func() bool { return true })
	}
	w.log(t).Info("released item")
	w.withdrawStart(ctx, t, false)
	return t.lease.Release(ctx)
}

// report maps an outcome to calls of the queue.
func (w *Worker) report(ctx context.Context, t *task, o outcome, res *item.Result) error {
	log := w.log(t)
	if o.kind == faulted && w.cfg.Patience > 0 && job.FromSource(o.err) {
		o.kind = retried
	}
	switch o.kind {
	case suspended:
		return t.lease.Release(ctx)
	case faulted:
		return w.reportEnvironment(ctx, t, o.err)
	case disputed:
		m := t.lease.Marks()
		w.noteFailure(t, o.err)
		if len(m.Disputed) == 0 {
			log.Warn("could not restore item, asks for a second opinion", "reason", o.err)
			w.withdrawStart(ctx, t, false)
			m.Disputed = []string{w.cfg.Name}
			defer w.storeLog(ctx, t, manifest.AttemptDisputed, o.err)
			return t.lease.ReleaseMarked(ctx, m)
		}
		o.err = w.confirm(m.Disputed, o.err)
		switch {
		case t.checked != nil:
			return w.answer(ctx, t)
		case !inputFailure(o.err):
			log.Error("buried item after a second opinion", "reason", o.err)
			return w.bury(ctx, t, o.err)
		}
		log.Error("item cannot be restored", "reason", o.err)
		res = w.result(t, item.OutcomeFailed, o.err.Error())
	case retried:
		// The items of a batch that hung run alone next.
		if guard.InCompany(o.err) || (!t.lease.Last() && !t.lease.Exhausted()) {
			delay := t.lease.RetryDelay()
			log.Warn("will retry item", "after", delay, "reason", o.err)
			w.cfg.Instruments.Retries.Add(ctx, 1)
			w.withdrawStart(ctx, t, false)
			defer w.storeLog(ctx, t, manifest.AttemptRetried, o.err)
			return t.lease.Retry(ctx, delay)
		}
		log.Error("no attempts left, buried item", "reason", o.err)
		return w.bury(ctx, t, o.err)
	case refused:
		log.Error("refused item", "reason", o.err)
		t.assigned.Refuse(o.err) // before the release: this worker must not lease the item again
		w.withdrawStart(ctx, t, false)
		return t.lease.Release(ctx)
	case failed:
		log.Error("item cannot be restored", "reason", o.err)
		res = w.result(t, item.OutcomeFailed, o.err.Error())
	case cancelled:
		log.Info("dropped item of a cancelled campaign")
		w.withdrawStart(ctx, t, true)
		if err := t.lease.Ack(ctx); err != nil {
			log.Debug("could not acknowledge item", "reason", err) // the queue of a cancelled campaign is often removed
		}
		return nil
	case done:
		if t.checked != nil {
			return w.answer(ctx, t)
		}
		if t.batch > 0 { // not a result that was found
			w.breaker.Succeed(t.assigned.Campaign, t.Item)
		}
		log.Info("restored item", "seconds", t.seconds)
	}
	if res.Outcome == item.OutcomeFailed {
		defer w.storeLog(ctx, t, string(res.Outcome), o.err)
	}
	if err := w.publishResult(ctx, t, res); err != nil {
		return err
	}
	w.withdrawStart(ctx, t, true)
	return t.lease.Ack(ctx)
}

// answer publishes the answer to a preflight.
func (w *Worker) answer(ctx context.Context, t *task) error {
	if _, err := publish(ctx, t, t.checked); err != nil {
		return err
	}
	return t.lease.Ack(ctx)
}

// reportEnvironment counts a failure of the worker's environment and returns the item to the queue.
func (w *Worker) reportEnvironment(ctx context.Context, t *task, reason error) error {
	w.noteFailure(t, reason)
	// A store that refuses the results of one item refuses those of others too.
	ofItem := t.preflight == nil && (job.FromSource(reason) || errors.Is(reason, onnxruntime.ErrMemory))
	return w.releaseFaulted(ctx, t, reason, func() bool { return ofItem && w.test(ctx, t, true) == nil })
}

// releaseFaulted returns an item to the queue that the worker's environment has failed. The attempt does not count. An
// item that failed in this way maxFaults times runs alone; if it fails again and is to blame, it is dead.
func (w *Worker) releaseFaulted(ctx context.Context, t *task, reason error, toBlame func() bool) error {
	w.cfg.Instruments.Faults.Add(ctx, 1)
	m := t.lease.Marks()
	if m.Faults >= maxFaults && toBlame() {
		reason = fmt.Errorf("%d failures of the environment, the last while it ran alone: %w", m.Faults+1, reason)
		w.log(t).Error("buried item", "reason", reason)
		return w.bury(ctx, t, reason)
	}
	m.Faults++
	w.log(t).Warn("released item after a failure of the environment", "failures", m.Faults, "reason", reason)
	w.withdrawStart(ctx, t, false)
	return t.lease.ReleaseMarked(ctx, m)
}

// bury publishes the item as dead, removes it from the queue and stores the record of its last attempt.
func (w *Worker) bury(ctx context.Context, t *task, reason error) error {
	res := w.result(t, item.OutcomeDead, reason.Error())
	defer w.storeLog(ctx, t, string(res.Outcome), reason)
	var err error
	if t.lease.Class() == manifest.ClassPreflight {
		failed := manifest.ClassPreflight
		if errors.Is(reason, errCrashed) {
			failed = manifest.CheckedByNone
		}
		_, err = publish(ctx, t, manifest.Checked{Worker: w.cfg.Name, Failed: failed, Reason: reason.Error()})
	} else {
		err = w.publishResult(ctx, t, res)
	}
	if err == nil {
		err = t.lease.Ack(ctx)
	}
	if err != nil {
		return err
	}
	w.withdrawStart(ctx, t, true)
	return nil
}

// parallelCalls is the number of items that inParallel settles at a time.
const parallelCalls = 16

// inParallel calls settle for all items, several at a time, and joins the errors: an item takes several round trips to the
// queue.
func inParallel[T any](items []T, settle func(item T) error) error {
	var group errgroup.Group
	group.SetLimit(parallelCalls)
	errs := make([]error, len(items))
	for i, item := range items {
		group.Go(func() error {
			errs[i] = settle(item)
			return nil
		})
	}
	_ = group.Wait() // the functions return nil
	return errors.Join(errs...)
}

// publishResult publishes the result event and counts it.
func (w *Worker) publishResult(ctx context.Context, t *task, res *item.Result) error {
	brief := res.Event(t.seconds)
	brief.Pool = w.cfg.Pool
	var event any = brief
	if w.cfg.WholeResults {
		event = res
	}
	isNew, err := publish(ctx, t, event)
	if err != nil || !isNew {
		return err
	}
	attrs := metric.WithAttributes(telemetry.TaskKey.String(taskLabel(&t.Item)), telemetry.OutcomeKey.String(string(res.Outcome)))
	w.cfg.Instruments.Items.Add(ctx, 1, attrs)
	w.cfg.Instruments.ItemDuration.Record(ctx, w.cfg.Now().Sub(t.leased).Seconds(), attrs)
	return nil
}

// taskLabel is the task of an item in metrics. The names of operator files have no limit.
func taskLabel(it *item.Item) string {
	if it.Operator != nil {
		return "own"
	}
	return it.Task
}

// publish publishes a result event, or the answer to a preflight, and reports whether it is new.
func publish(ctx context.Context, t *task, event any) (isNew bool, err error) {
	data, err := json.Marshal(event)
	if err != nil {
		return false, err
	}
	return t.lease.PublishOutcome(ctx, data)
}
