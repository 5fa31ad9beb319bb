package gpuworker

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"ddiff/internal/record"
)

// logTimeout bounds the time in which a worker stores the record of an attempt. A slow store must not delay the next items.
const logTimeout = 3 * time.Second

// The attributes of log records. docs/operations.md describes them.
const (
	keyCampaign = "campaign"
	keyID       = "id"
	keyItem     = "item"
	keyTask     = "task"
	keyAttempt  = "attempt"
	keyWorker   = "worker"
	keyTrace    = "trace_id"
	keySpan     = "span_id"
)

// log returns a logger with the attributes of an attempt.
func (c *core) log(t *task) *slog.Logger { return t.Logger(c.cfg.Logger) }

// Logger adds the attributes of the attempt to a logger.
func (t *task) Logger(log *slog.Logger) *slog.Logger {
	span := trace.SpanContextFromContext(t.ctx)
	log = log.With(keyCampaign, t.assigned.Campaign, keyID, t.lease.ID(), keyItem, t.name(), keyAttempt, t.lease.Attempt())
	if t.Item.Task != "" {
		log = log.With(keyTask, t.Item.Task)
	}
	if span.IsValid() {
		log = log.With(keyTrace, span.TraceID().String(), keySpan, span.SpanID().String())
	}
	return log
}

// storeLog stores the record of an attempt that did not restore its item, on a cluster; outcome is that of a [record.AttemptLog].
// A store that refuses it changes nothing else: the worker logs the first refusal.
func (w *Worker) storeLog(ctx context.Context, t *task, outcome string, reason error) {
	if outcome == "" || w.cfg.Log == nil || t.preflight != nil || t.assigned.Store == nil || t.lease.Class() == record.ClassPreflight {
		return
	}
	a := record.AttemptLog{
		ID: t.lease.ID(), Name: t.Item.Name, Task: t.Item.Task, Attempt: t.lease.Attempt(), Worker: w.cfg.Name, Outcome: outcome,
		At: w.cfg.Now().UTC(), Lines: w.cfg.Log.Lines(t.lease.ID(), true),
	}
	if span := trace.SpanContextFromContext(t.ctx); span.IsValid() {
		a.TraceID = span.TraceID().String()
	}
	if reason != nil {
		a.Reason = reason.Error()
	}
	data, err := json.Marshal(a)
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, logTimeout)
		defer cancel()
		err = t.assigned.Store.Put(ctx, a.Key(t.assigned.Campaign), data)
	}
	if err != nil && w.stats.logRefused.CompareAndSwap(false, true) {
		w.log(t).Warn("could not store the log of an attempt; further refusals are not logged", "reason", err)
	}
}
