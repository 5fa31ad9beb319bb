package gpuworker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ddiff/internal/gpuworker/guard"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/internal/restore/job"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/raster"
	"ddiff/internal/restore/solver"
	"ddiff/restore/item"
	"ddiff/restore/method"
	"ddiff/restore/operator"
)

// This file is the end of an attempt, from the answer of a stage to the acknowledgement: the cause of the answer's error chooses one of six
// outcomes, a second look may change it, and the row of the outcome says what the queue is told. docs/operations.md has both tables.

// kind is what becomes of an attempt.
type kind string

const (
	done     kind = "done"
	failed   kind = "failed"
	dead     kind = "dead"
	retried  kind = "retried"
	returned kind = "returned"
	dropped  kind = "dropped"
)

// move is the call that ends a lease.
type move string

const (
	ack   move = "is acknowledged"
	nak   move = "comes again after a growing delay"
	again move = "returns as a copy at the end of the queue"
)

// row is what an outcome does. The event is published before the item leaves the queue: a crash between the two repeats the event and never
// loses it.
type row struct {
	event  bool // an event for the coordinator's ledger
	queue  move
	ledger string // state of the item
	next   string // who looks again
}

var rows = map[kind]row{
	done:     {event: true, queue: ack, ledger: "done", next: "nobody"},
	failed:   {event: true, queue: ack, ledger: "failed", next: "`ddiff retry ID --failed`"},
	dead:     {event: true, queue: ack, ledger: "dead", next: "`ddiff retry ID --dead`"},
	retried:  {queue: nak, ledger: "pending", next: "any worker, which runs it alone; the last attempt is `dead`"},
	returned: {queue: again, ledger: "pending", next: "another worker, or this one when it is sound"},
	dropped:  {queue: ack, ledger: "cancelled", next: "nobody"},
}

// why is the reason of a returned item. A doubt and a fault get second looks.
type why string

const (
	doubt      why = "doubt"
	fault      why = "fault"
	refusal    why = "refusal"
	suspension why = "suspension"
	drain      why = "drain" // releaseAll returns the item
)

// causes are the causes of an error, of which the first that matches counts. ctx ends when the worker drains.
var causes = []struct {
	name string
	is   func(ctx context.Context, t *task, err error) bool
	kind kind
	why  why
}{
	{"the campaign is cancelled at once", func(_ context.Context, t *task, err error) bool {
		return t.assigned.cancelled() || errors.Is(err, errCancelled)
	}, dropped, ""},
	{"a stage exceeds its limit", anyOf(guard.ErrHung), retried, ""},
	{"the worker drains", func(ctx context.Context, _ *task, err error) bool {
		return ctx.Err() != nil && errors.Is(err, ctx.Err())
	}, returned, drain},
	{"another version of ddiff is needed", func(_ context.Context, t *task, err error) bool {
		return errors.Is(err, job.ErrUnsupported) && t.assigned.Refuse != nil
	}, returned, refusal},
	{"the worker is suspended", anyOf(errSuspended), returned, suspension},
	{"a wrong digest, a result that diverges or is not finite, too little memory of the machine",
		anyOf(job.ErrDigest, solver.ErrDiverged, raster.ErrNotFinite, raster.ErrBudget, job.ErrMemory), returned, doubt},
	{"the environment: store, dataset, disk or device", func(_ context.Context, _ *task, err error) bool { return guard.Environmental(err) }, returned, fault},
	{"a missing file", func(_ context.Context, _ *task, err error) bool { return job.FromSource(err) }, returned, doubt}, // perhaps on this worker only
	{"bad input", anyOf(inputErrors...), failed, ""},
	{"another error", func(context.Context, *task, error) bool { return true }, retried, ""},
}

// anyOf returns the test for one of some errors.
func anyOf(of ...error) func(context.Context, *task, error) bool {
	return func(_ context.Context, _ *task, err error) bool {
		return slices.ContainsFunc(of, func(target error) bool { return errors.Is(err, target) })
	}
}

// inputErrors: the item's own data cannot be restored.
var inputErrors = []error{
	job.ErrInput, job.ErrUnsupported, raster.ErrFormat, raster.ErrTruncated, raster.ErrTooLarge, raster.ErrShape,
	operator.ErrTask, operator.ErrParam, operator.ErrShape, method.ErrSetting, solver.ErrConfig,
}

var (
	// errCancelled: the campaign was cancelled immediately.
	errCancelled = errors.New("the campaign is cancelled")
	// errSuspended: the worker tests its environment before it starts another item.
	errSuspended = errors.New("the worker is suspended")
)

// outcome is the end of one attempt at one item.
type outcome struct {
	kind kind
	why  why
	err  error
}

// outcomeOf classifies the error of any stage.
func outcomeOf(ctx context.Context, t *task, err error) outcome {
	if err == nil {
		return outcome{kind: done}
	}
	for _, c := range causes {
		if c.is(ctx, t, err) {
			return outcome{c.kind, c.why, err}
		}
	}
	panic("the last cause matches every error")
}

// lease is the part of a queue.Lease that ends it.
type lease interface {
	Marks() queue.Marks
	Last() bool
	RetryDelay() time.Duration
	PublishOutcome(ctx context.Context, payload []byte) (isNew bool, err error)
	Ack(ctx context.Context) error
	Retry(ctx context.Context, delay time.Duration) error
	ReleaseMarked(ctx context.Context, m queue.Marks) error
}

// conclude carries out the outcome of an attempt; res is the result of an item that is done. An error means that the queue is unavailable: the
// lease expires, and the next worker finds the result.
func (w *Worker) conclude(ctx context.Context, l lease, t *task, o outcome, res *item.Result) error {
	o, marks := w.lookAgain(ctx, l, t, o)
	to, says := rows[o.kind], messages[o.String()]
	w.log(t).Log(ctx, says.level, says.text, o.detail(t))
	defer w.storeLog(ctx, t, says.record, o.err)
	if to.event {
		if err := w.publishOutcome(ctx, l, t, o, res); err != nil {
			return err
		}
	}
	if to.queue != ack {
		w.withdrawStart(ctx, t, false) // the attempt has an answer
	}
	var err error
	switch to.queue {
	case ack:
		err = l.Ack(ctx)
	case nak:
		w.cfg.Instruments.Retries.Add(ctx, 1)
		err = l.Retry(ctx, l.RetryDelay())
	case again:
		err = l.ReleaseMarked(ctx, marks)
	}
	if err != nil && o.kind == dropped { // the queue of a cancelled campaign is often removed
		w.log(t).Debug("could not acknowledge item", "reason", err)
		err = nil
	}
	if err == nil && to.queue == ack {
		w.withdrawStart(ctx, t, true) // until then the starts are the evidence of a death
	}
	return err
}

// maxFaults is the number of environment failures of an item after which it runs alone. If it then fails again, and the worker's
// environment passes its test, the item is dead.
const maxFaults = 10

// lookAgain returns the outcome after the second looks, and the marks for the next worker. A doubt is returned once: the second opinion decides. A
// fault is returned until the item is to blame. The last attempt is not retried.
func (w *Worker) lookAgain(ctx context.Context, l lease, t *task, o outcome) (outcome, queue.Marks) {
	m := l.Marks()
	if o.why == fault && w.cfg.Patience > 0 && job.FromSource(o.err) {
		o = outcome{kind: retried, err: o.err} // a run in one process does not wait for files
	}
	switch o.why {
	case fault:
		w.noteFailure(t, o.err)
		w.cfg.Instruments.Faults.Add(ctx, 1)
		if m.Faults++; m.Faults > maxFaults && w.blames(ctx, t, o.err) {
			o = outcome{kind: dead, err: fmt.Errorf("%d failures of the environment, the last while it ran alone: %w", m.Faults, o.err)}
		}
	case doubt:
		w.noteFailure(t, o.err)
		switch {
		case len(m.Disputed) == 0:
			m.Disputed = []string{w.cfg.Name}
		case t.checked != nil:
			o = outcome{kind: done} // a failed check is an answer
		default:
			o = outcome{kind: failed, err: w.confirm(m.Disputed, o.err)}
		}
	case refusal:
		t.assigned.Refuse(o.err) // before the item returns: this worker must not lease it again
	}
	if o.kind == retried && !guard.InCompany(o.err) && l.Last() { // the items of a batch that hung run alone next
		o.kind = dead
	}
	return o, m
}

// blames reports whether an item that ran alone, and not the worker, is to blame for a failure of the environment.
func (w *Worker) blames(ctx context.Context, t *task, err error) bool {
	// A store that refuses the results of one item refuses those of others too.
	ofItem := t.preflight == nil && (job.FromSource(err) || errors.Is(err, onnxruntime.ErrMemory) || errors.Is(err, onnxruntime.ErrDevice))
	return t.fault != nil || ofItem && w.test(ctx, t, true) == nil
}

// confirm returns the reason of a doubt that got its second opinion.
func (w *Worker) confirm(disputed []string, reason error) error {
	others := slices.DeleteFunc(slices.Clone(disputed), func(name string) bool { return name == w.cfg.Name })
	if len(others) == 0 {
		return reason
	}
	return fmt.Errorf("%w; worker %s could not restore it either", reason, strings.Join(others, ", "))
}

// publishOutcome publishes the event of an outcome: the result of an item, or the answer to a preflight.
func (w *Worker) publishOutcome(ctx context.Context, l lease, t *task, o outcome, res *item.Result) error {
	isCheck := t.checked != nil || t.lease.Class() == record.ClassPreflight
	var event any = t.checked
	switch {
	case isCheck && o.kind != done:
		answer := record.Checked{Worker: w.cfg.Name, Failed: record.ClassPreflight, Reason: o.err.Error()}
		if errors.Is(o.err, errCrashed) {
			answer.Failed = record.CheckedByNone
		}
		event = answer
	case !isCheck:
		if o.kind != done {
			res = w.result(t, item.Outcome(o.kind), o.err.Error())
		} else if t.Batch > 0 { // not a result that was found
			w.breaker.Succeed(t.assigned.Campaign, t.Item)
		}
		brief := res.Event(t.Seconds)
		brief.Pool = w.cfg.Pool
		if event = brief; w.cfg.WholeResults {
			event = res
		}
	}
	data, err := json.Marshal(event)
	if err != nil {
		return err
	}
	isNew, err := l.PublishOutcome(ctx, data)
	if err == nil && isNew && !isCheck {
		w.count(ctx, t, res.Outcome)
	}
	return err
}

// releaseAll returns the items that are not settled to the queue, after all stages have ended. If an item returned while this worker
// still leases, this worker would lease it again and hold it until the lease expires.
func (w *Worker) releaseAll(ctx context.Context) error {
	ctx, cancel := w.shutdownContext(context.WithoutCancel(ctx))
	defer cancel()
	a := w.watchdog.Begin(ctx, "release", w.cfg.Limits.Finish)
	defer a.End()
	return inParallel(w.leases.unsettled(), func(t *task) error {
		o, res := w.leftOver(a.Ctx, t)
		err := w.conclude(w.traced(a.Ctx, t, o), t.lease, t, o, res)
		w.end(t)
		return w.ignoreTransient("release", t, err)
	})
}

// leftOver returns the outcome of an item that no stage has ended. Another worker may have finished a redelivered item, and died before it
// published its outcome.
func (w *Worker) leftOver(ctx context.Context, t *task) (outcome, *item.Result) {
	if t.assigned.cancelled() {
		return outcome{kind: dropped, err: errCancelled}, nil
	}
	if t.lease.Attempt() > 1 && t.Item.ID != "" {
		if res, err := t.readResult(ctx); err == nil {
			return outcome{kind: done}, res
		}
	}
	if t.fault != nil {
		return outcome{returned, fault, t.fault}, nil
	}
	return outcome{kind: returned, why: drain}, nil
}
