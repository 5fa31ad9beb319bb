package queue_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"ddiff/queue"
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
	wantNone(t, q, 300*time.Millisecond) // the server counts the last ones as ended at the next request
}

// TestSweep: items that the server no longer delivers are published again, with the attempts of its deliveries. Others stay.
func TestSweep(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	q := open(t, server, queue.Config{Campaign: "größe 1", AckWait: 100 * time.Millisecond, MaxAttempts: 1})
	busy := open(t, server, queue.Config{Campaign: "busy"})
	must(t, q.PublishBatch(t.Context(), []queue.Work{{Class: "c 1", ID: "1", Round: 3, Payload: []byte("p")}, {Class: "c 1", ID: "2", Round: 3, Payload: []byte("p")}}))
	must(t, busy.PublishBatch(t.Context(), []queue.Work{{Class: "c", ID: "1"}, {Class: "c", ID: "2"}}))
	lease(t, busy)
	exhaust(t, q, 2, 3)

	nc := join(t, server)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	var log textLog
	go func() {
		ended <- queue.Sweep(ctx, nc, queue.SweepConfig{Interval: time.Millisecond, Logger: log.logger()})
	}()
	for range 2 * 3 {
		lease(t, q)
	}
	for range 2 {
		l := lease(t, q)
		if l.Round() != 3 || string(l.Payload()) != "p" || l.Class() != "c=201" || l.Attempt() != 7 || !l.Hopeless() {
			t.Errorf("item %s of round %d, class %s, attempt %d", l.ID(), l.Round(), l.Class(), l.Attempt())
		}
		must(t, l.Ack(t.Context()))
	}
	wantDepth(t, busy, 1, 1)
	if n := streamCount(t, streamsOf(t, nc), "DDIFF_WORK"); n != 2 {
		t.Errorf("%d items remain, want 2", n)
	}
	stop()
	if err := <-ended; err != nil || strings.Contains(log.String(), "interrupted") {
		t.Errorf("Sweep: %v\n%s", err, log.String())
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
