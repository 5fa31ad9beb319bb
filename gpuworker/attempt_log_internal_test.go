package gpuworker

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"ddiff/internal/gpuworker/guard"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/internal/restore/job"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/storage"
)

// storedLogs returns the records of attempts in a store.
func storedLogs(t *testing.T, s *storage.Dir) (all []record.AttemptLog) {
	t.Helper()
	for info, err := range s.List(t.Context(), record.LogsFolder) {
		must(t, err)
		data, err := s.Get(t.Context(), info.Key)
		must(t, err)
		var a record.AttemptLog
		if err := json.Unmarshal(data, &a); err != nil || a.Key("a") != info.Key {
			t.Fatalf("%s has %s, %v", info.Key, data, err)
		}
		all = append(all, a)
	}
	return all
}

// The record of an attempt that did not restore its item has its end, reason, trace and log lines.
func TestStoredLogOfAttempt(t *testing.T) {
	t.Parallel()
	q, clock, log := internalQueue(t, queue.Config{}), newStoppedClock(), &strings.Builder{}
	tail := NewTail(slog.NewTextHandler(log, nil))
	worker := func() *Worker {
		return quietWorker(t, func(c *Config) { c.Log, c.Logger, c.Now = tail, slog.New(tail), clock.now })
	}
	l := leaseNew(t, q, 1)[0]
	must(t, q.PublishBatch(t.Context(), []queue.Work{{Class: record.ClassPreflight, ID: record.IDPreflight, Payload: []byte("{}")}}))
	check := leaseAgain(t, q, 1)[0]
	span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}})
	for name, tt := range map[string]struct {
		change func(*Worker, *task)
		reason error
		want   *record.AttemptLog
	}{
		"without a log":   {func(w *Worker, _ *task) { w.cfg.Log = nil }, errItem, nil},
		"without a store": {func(_ *Worker, t *task) { t.assigned.Store = nil }, errItem, nil},
		"read preflight":  {func(_ *Worker, t *task) { t.preflight = &record.Preflight{} }, errItem, nil},
		"preflight":       {func(_ *Worker, t *task) { t.lease = check }, errItem, nil},
		"retried":         {func(*Worker, *task) {}, errItem, &record.AttemptLog{Reason: errItem.Error()}},
		"no reason":       {func(*Worker, *task) {}, nil, &record.AttemptLog{}},
		"traced": {func(_ *Worker, t *task) { t.ctx = trace.ContextWithSpanContext(t.ctx, span) }, errItem, &record.AttemptLog{
			Reason: errItem.Error(), TraceID: span.TraceID().String(),
		}},
	} {
		s := emptyStore(t)
		tk := taskOf(t, l, Assignment{Campaign: "a", Store: s})
		tk.Item.Name, tk.Item.Task = "image", "hdr"
		own := worker()
		own.cfg.Logger.Info("a line", "id", l.ID())
		tt.change(own, tk)
		log.Reset()
		own.storeLog(t.Context(), tk, record.AttemptRetried, tt.reason)
		all := storedLogs(t, s)
		if log.Len() > 0 || len(all) != min(1, len(all)) || (len(all) == 1) != (tt.want != nil) {
			t.Errorf("%s: %d records, log %s", name, len(all), log)
		}
		if tt.want == nil || len(all) == 0 {
			continue
		}
		a := all[0]
		if a.ID != l.ID() || a.Name != "image" || a.Task != "hdr" || a.Attempt != 1 || a.Worker != "tester" || a.Outcome != record.AttemptRetried ||
			!a.At.Equal(clock.time) || len(a.Lines) == 0 || a.Reason != tt.want.Reason || a.TraceID != tt.want.TraceID {
			t.Errorf("%s: record %+v", name, a)
		}
	}
	// A store that refuses the record is logged once.
	tk := taskOf(t, l, Assignment{Campaign: "a", Store: &readOnlyStore{Dir: emptyStore(t), denied: true}})
	w := worker()
	log.Reset()
	for range 2 {
		w.storeLog(t.Context(), tk, record.AttemptRetried, errItem)
	}
	if n := strings.Count(log.String(), "could not store the log of an attempt"); n != 1 {
		t.Errorf("%d log lines: %s", n, log)
	}
}

// checks is a restorer whose check has a prescribed error.
type checks struct {
	restorer
	err error
}

func (c checks) check(context.Context, *task) (record.Checked, error) {
	return record.Checked{Worker: "tester"}, c.err
}

// Each error of a preflight's checks has its effect on the queue: an answer, or another lease with its attempt and marks.
func TestOutcomesOfPreflight(t *testing.T) {
	t.Parallel()
	q := queueOf(t)
	ended, end := context.WithCancel(t.Context())
	end()
	for id, tt := range map[string]struct {
		err      error
		faults   int // marks of the lease
		ctx      context.Context
		lifetime context.Context
		refuses  bool
		events   int
		next     int // attempt of the next lease; 0: none
		left     queue.Marks
		released bool
	}{
		"passed":            {events: 1},
		"failed":            {err: errItem, events: 1},
		"hung":              {err: &guard.HangError{Limit: 1, Items: 1}, next: 2},
		"cancelled":         {err: errItem, lifetime: ended},
		"draining":          {err: errItem, ctx: ended, released: true, next: 1},
		"hung-draining":     {err: &guard.HangError{Limit: 1, Items: 1}, ctx: ended, next: 2},
		"unsupported":       {err: job.ErrUnsupported, events: 1},
		"unsupported-fleet": {err: job.ErrUnsupported, refuses: true, next: 1},
		"store":             {err: storage.ErrUnavailable, next: 1, left: queue.Marks{Faults: 1}},
		"keys":              {err: storage.ErrAccess, next: 1, left: queue.Marks{Faults: 1}},
		"store-often":       {err: storage.ErrUnavailable, faults: maxFaults - 1, next: 1, left: queue.Marks{Faults: maxFaults}},
		"store-always":      {err: storage.ErrUnavailable, faults: maxFaults, next: 1, left: queue.Marks{Faults: maxFaults, Disputed: []string{"tester"}}},
		"device":            {err: onnxruntime.ErrDeviceLost, next: 1, left: queue.Marks{Disputed: []string{"tester"}}},
		"device-fails":      {err: onnxruntime.ErrDevice, next: 1, left: queue.Marks{Disputed: []string{"tester"}}},
	} {
		w, dir := workerOf(t)
		w.restorer = checks{w.restorer, tt.err}
		refusals := 0
		a := Assignment{Campaign: "test", Store: dir, Lifetime: tt.lifetime}
		if tt.refuses {
			a.Refuse = func(error) { refusals++ }
		}
		tk := &task{lease: at(t, q, id, 1, queue.Marks{Faults: tt.faults}), assigned: newAssigned(a, 1, nil, 0), ctx: t.Context(), preflight: &record.Preflight{}}
		ctx := tt.ctx
		if ctx == nil {
			ctx = t.Context()
		}
		before := events(t, q)
		if err := w.preflight(ctx, []*task{tk}); err != nil {
			t.Errorf("%s: %v", id, err)
		}
		if (w.stats.settled.Load() == 0) != tt.released {
			t.Errorf("%s: settled, or not", id)
		} else if tt.released {
			must(t, tk.lease.Release(t.Context()))
		}
		if n := events(t, q) - before; n != tt.events || (refusals > 0) != tt.refuses {
			t.Errorf("%s: %d events, %d refusals", id, n, refusals)
		}
		wantLeft(t, q, id, tt.next, tt.left)
	}
}

// When a preflight cannot be settled, the worker ends with the error, and releases the preflights after it.
func TestPreflightThatCannotBeSettled(t *testing.T) {
	t.Parallel()
	q := internalQueue(t, queue.Config{})
	w := quietWorker(t)
	w.restorer = checks{w.restorer, nil}
	var tasks []*task
	for _, l := range leaseNew(t, q, 4) {
		tk := taskOf(t, l, Assignment{Campaign: "a", Store: emptyStore(t)})
		tk.preflight = &record.Preflight{}
		tasks = append(tasks, tk)
	}
	must(t, tasks[1].lease.Ack(t.Context()))
	if err := w.preflight(t.Context(), tasks); err == nil || !strings.Contains(err.Error(), "settle item") {
		t.Errorf("error %v", err)
	}
	if w.stats.settled.Load() != 2 {
		t.Error("the other preflights are not left to be released")
	}
	if err := w.preflight(t.Context(), tasks[2:]); err != nil || w.stats.settled.Load() != 4 {
		t.Errorf("the other preflights: %v", err)
	}
}
