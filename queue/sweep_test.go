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
	wantNone(t, q, 300*time.Millisecond) // the server sends the advisory at the next request
}

// sweep runs a sweeper until the test ends or stop is called, which returns its log.
func sweep(t *testing.T, nc *nats.Conn, interval time.Duration, outcome func(string, queue.DeadLetter) ([]byte, error)) (stop func() string) {
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

func TestSweep(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	cfg := queue.Config{Campaign: "größe 1", AckWait: 100 * time.Millisecond, MaxAttempts: 1}
	q := open(t, server, cfg)
	nc := join(t, server)
	must(t, q.PublishBatch(t.Context(), []queue.Work{{Class: "c 1", ID: "1", Round: 3, Payload: []byte("p")}}))
	exhaust(t, q, 1, 3)

	// The first sweeper has no outcome.
	var calls atomic.Int32
	stop := sweep(t, nc, time.Hour, func(campaign string, d queue.DeadLetter) ([]byte, error) {
		calls.Add(1)
		if campaign != cfg.Campaign || d.ID != "1" || d.Round != 3 || string(d.Payload) != "p" || d.Class != "c=201" || d.Attempts != 3 {
			t.Errorf("campaign %s, letter %+v", campaign, d)
		}
		return nil, errors.New("no outcome")
	})
	waitFor(t, "the first attempt", func() bool { return calls.Load() > 0 })
	if log := stop(); strings.Contains(log, "interrupted") || !strings.Contains(log, "could not sweep item, will retry") {
		t.Errorf("a sweeper without an outcome logs\n%s", log)
	}
	if letters := deadLetters(t, q); len(letters) != 0 {
		t.Fatalf("dead letters %+v without an outcome", letters)
	}
	js := streamsOf(t, nc)
	consumer, err := js.Consumer(t.Context(), "DDIFF_ADVISORY", "ddiff-sweep")
	must(t, err)
	if info := consumer.CachedInfo(); info.NumAckPending != 1 {
		t.Fatalf("%d advisories wait for a retry, want 1", info.NumAckPending)
	}
	// A new consumer delivers the advisory at once, without the retry delay. Two messages that are no advisories of an item go.
	must(t, js.DeleteConsumer(t.Context(), "DDIFF_ADVISORY", "ddiff-sweep"))
	for _, text := range []string{"{garbage", `{"consumer":"ddiff-gone","stream_seq":1}`} {
		_, err = js.Publish(t.Context(), "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.DDIFF_WORK.x", []byte(text))
		must(t, err)
	}
	stop = sweep(t, nc, time.Hour, func(string, queue.DeadLetter) ([]byte, error) { return []byte("dead"), nil })
	if got := results(t, q, 1); got["1"] != "dead" {
		t.Fatalf("results %v", got)
	}
	waitFor(t, "the item to leave", func() bool { return len(deadLetters(t, q)) == 1 && streamCount(t, js, "DDIFF_WORK") == 0 })
	waitFor(t, "the advisory to leave", func() bool { return streamCount(t, js, "DDIFF_ADVISORY") == 0 })
	wantDepth(t, q, 0, 0)
	if log := stop(); strings.Contains(log, "interrupted") || strings.Contains(log, "could not") {
		t.Errorf("a sweeper logs\n%s", log)
	}
}

// TestSweepWithoutAdvisory deletes the server's advisories: the items are published again, and buried after further deliveries.
func TestSweepWithoutAdvisory(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	q := open(t, server, queue.Config{AckWait: 100 * time.Millisecond, MaxAttempts: 1})
	busy := open(t, server, queue.Config{Campaign: "busy"})
	nc := join(t, server)
	must(t, q.PublishBatch(t.Context(), []queue.Work{{Class: "c", ID: "1"}, {Class: "c", ID: "2"}}))
	must(t, busy.PublishBatch(t.Context(), []queue.Work{{Class: "c", ID: "1"}, {Class: "c", ID: "2"}}))
	lease(t, busy)
	exhaust(t, q, 2, 3)
	js := streamsOf(t, nc)
	waitFor(t, "the advisories", func() bool { return streamCount(t, js, "DDIFF_ADVISORY") == 2 })
	advisories, err := js.Stream(t.Context(), "DDIFF_ADVISORY")
	must(t, err)
	must(t, advisories.Purge(t.Context()))

	stop := sweep(t, nc, time.Millisecond, func(_ string, d queue.DeadLetter) ([]byte, error) {
		if d.Attempts != 6 {
			t.Errorf("%d attempts, want 6", d.Attempts)
		}
		return []byte("dead"), nil
	})
	exhaust(t, q, 2, 3)
	if got := results(t, q, 2); len(got) != 2 {
		t.Fatalf("results %v", got)
	}
	waitFor(t, "both letters", func() bool { return len(deadLetters(t, q)) == 2 && streamCount(t, js, "DDIFF_WORK") == 2 })
	wantDepth(t, busy, 1, 1)
	if log := stop(); strings.Contains(log, "interrupted") {
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
