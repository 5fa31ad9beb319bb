package gpuworker

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"ddiff/internal/gpuworker/guard"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/restore/item"
	"ddiff/telemetry"
)

// hookedContext is a context that calls a function when its end is awaited a second time.
type hookedContext struct {
	context.Context
	waits int
	hook  func()
}

func (c *hookedContext) Done() <-chan struct{} {
	if c.waits++; c.waits == 2 {
		c.hook()
	}
	return c.Context.Done()
}

// loaded is a restorer for which every item is loaded.
type loaded struct{ restorer }

func (loaded) prepare(context.Context, *task) (*item.Result, error) { return nil, nil }

// The worker leases nothing until a suspect is settled; it does not wait for other items.
func TestWorkerAwaitsSuspect(t *testing.T) {
	t.Parallel()
	q := internalQueue(t, queue.Config{})
	data, err := json.Marshal(item.Item{ID: "item0", Campaign: "a", Name: "image"})
	if err == nil {
		err = q.PublishBatch(t.Context(), []queue.Work{{Class: "class", ID: "item0", Payload: data}})
	}
	must(t, err)
	l := leaseAgain(t, q, 1)[0]
	for _, alone := range []bool{false, true} {
		if alone {
			l = remarked(t, q, l, queue.Marks{Faults: maxFaults})
		}
		w, out := quietWorker(t), make(chan []*task, 1)
		w.restorer = loaded{}
		// The first wait is that for the next stage, which is ready; the second is that for the end of the suspect.
		ctx := &hookedContext{Context: t.Context(), hook: func() { w.end(w.leases.unsettled()[0]) }}
		must(t, w.startLeases(ctx, Assignment{Campaign: "a", Store: emptyStore(t)}, []*queue.Lease{l}, out))
		if held := w.leases.count(); len(out) != 1 || (held == 0) != alone {
			t.Errorf("alone %t: %d groups, the worker holds %d items", alone, len(out), held)
		}
	}
}

// A second attempt at an item counts as a redelivery.
func TestCountOfRedeliveries(t *testing.T) {
	t.Parallel()
	reader := sdkmetric.NewManualReader()
	in, err := telemetry.NewInstruments(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("ddiff"))
	must(t, err)
	q := internalQueue(t, queue.Config{})
	w := quietWorker(t, func(c *Config) { c.Instruments = in })
	l := leaseNew(t, q, 1)[0]
	for attempt := range 3 {
		w.start(t.Context(), newAssigned(Assignment{Campaign: "a"}, 1, nil, 0), l)
		if n := sums(t, reader)["ddiff.redeliveries"]; n != float64(attempt) {
			t.Errorf("%g redeliveries in attempt %d", n, attempt+1)
		}
		l = retryOf(t, q, l)
	}
}

// watchingSources is a dataset that calls a function for each file.
type watchingSources func(ctx context.Context)

func (f watchingSources) Get(ctx context.Context, _ string) ([]byte, error) {
	f(ctx)
	return nil, errItem
}

// A failed check is logged, but not after the worker began to drain. Only the check that solves can be interrupted.
func TestLogOfPreflightChecks(t *testing.T) {
	t.Parallel()
	q, log := internalQueue(t, queue.Config{}), &strings.Builder{}
	w := quietWorker(t, logTo(log))
	l := leaseNew(t, q, 1)[0]
	check := func(ctx context.Context, a Assignment, sample ...item.Item) (record.Checked, error) {
		t.Helper()
		log.Reset()
		tk := taskOf(t, l, a)
		tk.preflight = &record.Preflight{Items: sample}
		return engineRestorer{w.core}.check(ctx, tk)
	}
	unusable := Assignment{Campaign: "a", EngineError: errItem}
	c, err := check(t.Context(), unusable)
	if !errors.Is(err, errItem) || c.Failed != CheckPrior || !strings.Contains(log.String(), "campaign failed a preflight check") {
		t.Errorf("%+v, %v, log %s", c, err, log)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if c, err = check(ended, unusable); err == nil || c.Failed != CheckPrior || log.Len() > 0 {
		t.Errorf("%+v, %v, log %s", c, err, log)
	}
	w.cfg.Logger = slog.New(slog.DiscardHandler)
	e := engineOf(t)
	it, reads := sampleItem(t, e, 16, 16), 0
	a := Assignment{Campaign: "a", Engine: e, Store: emptyStore(t), Sources: watchingSources(func(ctx context.Context) {
		reads++
		if reads > 1 {
			return
		}
		limit := w.cfg.Limits.Compile + w.cfg.Limits.Solve
		w.watchdog.SetDraining()
		if w.watchdog.Check(limit - 1); ctx.Err() != nil || w.Health() != nil {
			t.Errorf("a check was interrupted before its limit: %v, %v", ctx.Err(), w.Health())
		}
		w.watchdog.Check(1)
		var hang *guard.HangError
		if !errors.As(w.Health(), &hang) || hang.Stage != "preflight: "+CheckSources || hang.Limit != limit {
			t.Errorf("at the limit: %v", w.Health())
		}
	})}
	if c, err = check(t.Context(), a, it); c.Failed != CheckSources || reads == 0 {
		t.Errorf("%+v, %v, %d reads", c, err, reads)
	}
}
