package gpuworker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/errgroup"

	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/restore/item"
	"ddiff/storage"
	"ddiff/telemetry"
)

// shutdownTimeout bounds calls of the queue while the worker drains.
const shutdownTimeout = 10 * time.Second

// settle ends an attempt, see conclude, within its span and the limit of a stage. Items of a draining worker are left to releaseAll.
func (w *Worker) settle(ctx context.Context, t *task, o outcome, res *item.Result) error {
	if o.why == drain {
		return nil
	}
	// A finished item is settled even while the worker drains.
	ctx, cancel := w.shutdownContext(w.traced(context.WithoutCancel(ctx), t, o))
	defer cancel()
	a := w.watchdog.Begin(ctx, telemetry.StageSettle, w.cfg.Limits.Finish, t)
	defer a.End()
	ctx, end := w.cfg.Instruments.Stage(a.Ctx, w.cfg.Tracer, telemetry.StageSettle)
	err := w.conclude(ctx, t.lease, t, o, res)
	end(err, storage.Class(err))
	w.stats.unsettled.note(err)
	w.stats.settled.Add(1)
	w.end(t)
	return w.ignoreTransient("settle", t, err)
}

// String returns the outcome's name in spans and messages: its reason or its kind.
func (o outcome) String() string { return cmp.Or(string(o.why), string(o.kind)) }

// detail is what the log line of an outcome says beside its text.
func (o outcome) detail(t *task) slog.Attr {
	if o.err == nil {
		return slog.Float64("seconds", t.Seconds)
	}
	return slog.Any("reason", o.err)
}

// messages are the log lines of outcomes, and their names in the records of attempts. Spans show those above Info as errors.
var messages = map[string]struct {
	level  slog.Level
	text   string
	record string // empty: none
}{
	"done":       {slog.LevelInfo, "finished item", ""},
	"failed":     {slog.LevelError, "item cannot be restored", string(item.OutcomeFailed)},
	"dead":       {slog.LevelError, "buried item", string(item.OutcomeDead)},
	"retried":    {slog.LevelWarn, "will retry item", record.AttemptRetried},
	"doubt":      {slog.LevelWarn, "could not restore item, asks for a second opinion", record.AttemptDisputed},
	"fault":      {slog.LevelWarn, "released item after a failure of the environment", ""},
	"refusal":    {slog.LevelError, "refused item", ""},
	"suspension": {slog.LevelInfo, "released item of a suspended worker", ""},
	"drain":      {slog.LevelInfo, "released item", ""},
	"dropped":    {slog.LevelInfo, "dropped item of a cancelled campaign", ""},
}

// traced returns a context with the item's span, to which it adds the outcome of the attempt.
func (w *Worker) traced(ctx context.Context, t *task, o outcome) context.Context {
	span := trace.SpanFromContext(t.ctx)
	span.SetAttributes(attribute.String("ddiff.outcome", o.String()))
	if messages[o.String()].level > slog.LevelInfo {
		span.SetStatus(codes.Error, o.err.Error())
		span.SetAttributes(telemetry.ErrorKey.String(o.String()))
	}
	return trace.ContextWithSpan(ctx, span)
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

// count counts an item with its outcome.
func (w *Worker) count(ctx context.Context, t *task, o item.Outcome) {
	task := t.Item.Task
	if t.Item.Operator != nil { // the names of operator files have no limit
		task = "own"
	}
	attrs := metric.WithAttributes(telemetry.TaskKey.String(task), telemetry.OutcomeKey.String(string(o)))
	w.cfg.Instruments.Items.Add(ctx, 1, attrs)
	w.cfg.Instruments.ItemDuration.Record(ctx, w.cfg.Now().Sub(t.leased).Seconds(), attrs)
}
