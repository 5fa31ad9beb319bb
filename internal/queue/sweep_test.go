package queue_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"ddiff/internal/queue"
)

// exhaust lets every delivery of the campaign's items expire.
func exhaust(t *testing.T, q *queue.Queue, items, deliveries int) {
	t.Helper()
	for got := 0; got < items*deliveries; {
		leases, err := q.Lease(t.Context(), 1, patience)
		must(t, err)
		if len(leases) == 0 {
			t.Fatalf("%d deliveries, want %d", got, items*deliveries)
		}
		got += len(leases)
	}
	waitFor(t, "the end of the last leases", func() bool {
		wantNone(t, q, 50*time.Millisecond) // the server counts them as ended at a request
		waiting, leased, err := q.Depth(t.Context())
		must(t, err)
		return waiting+leased == 0
	})
}

// sweep runs a sweeper until the test ends or stop is called, which returns its log.
func sweep(t *testing.T, nc *nats.Conn, interval time.Duration, outcome func() ([]byte, error)) (stop func() string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	var log textLog
	go func() {
		ended <- queue.Sweep(ctx, nc, queue.SweepConfig{Interval: interval, Outcome: outcome, Logger: log.logger()})
	}()
	stop = func() string {
		cancel()
		if err, ok := <-ended; ok && err != nil {
			t.Errorf("Sweep: %v", err)
		}
		return log.String()
	}
	t.Cleanup(func() { cancel() })
	return stop
}

// TestSweep: exhausted items are published again, and are dead after further deliveries. An item without an outcome stays until it has one.
func TestSweep(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	cfg := queue.Config{Campaign: "größe 1", AckWait: 100 * time.Millisecond, MaxAttempts: 1}
	q := open(t, server, cfg)
	busy := open(t, server, queue.Config{Campaign: "busy"})
	nc := join(t, server)
	must(t, q.PublishBatch(t.Context(), []queue.Work{{Class: "c 1", ID: "1", Round: 3, Payload: []byte("p")}, {Class: "c 1", ID: "2", Round: 3, Payload: []byte("p")}}))
	must(t, busy.PublishBatch(t.Context(), []queue.Work{{Class: "c", ID: "1"}, {Class: "c", ID: "2"}}))
	lease(t, busy)
	exhaust(t, q, 2, queue.Deliveries(1)+2)

	var calls atomic.Int32
	stop := sweep(t, nc, time.Millisecond, func() ([]byte, error) {
		if calls.Add(1) <= 2 {
			return nil, errors.New("no outcome")
		}
		return []byte("dead"), nil
	})
	exhaust(t, q, 2, queue.Deliveries(1)+2)
	if got := results(t, q, 2); got["1"] != "dead" || got["2"] != "dead" {
		t.Fatalf("results %v", got)
	}
	for r, err := range q.Results(t.Context(), 0) {
		if err != nil || r.Round != 3 {
			t.Errorf("outcome %+v, %v", r, err)
		}
		break
	}
	waitFor(t, "the end of both items", func() bool { return streamCount(t, streamsOf(t, nc), "DDIFF_WORK") == 2 })
	wantDepth(t, q, 0, 0)
	wantDepth(t, busy, 1, 1)
	if log := stop(); strings.Contains(log, "interrupted") || strings.Count(log, "could not sweep item, will retry") != 2 {
		t.Errorf("a sweeper logs\n%s", log)
	}
}

func streamCount(t *testing.T, js jetstream.JetStream, name string) uint64 {
	t.Helper()
	stream, err := js.Stream(t.Context(), name)
	must(t, err)
	return stream.CachedInfo().State.Msgs
}

// waitFor waits until a condition holds.
func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v for %s", patience, what)
		}
		time.Sleep(10 * time.Millisecond) // between two requests
	}
}
