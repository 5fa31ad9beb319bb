package queue_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"ddiff/queue"
)

// TestExpiringCallsOfLeaseLoseNoItem publishes items during a series of short calls of Lease: each call must return the
// items that the server delivered to it, at their first attempt.
func TestExpiringCallsOfLeaseLoseNoItem(t *testing.T) {
	t.Parallel()
	const items = 300
	q := newQueue(t, queue.Config{})
	published := make(chan error, 1)
	go func() {
		for i := range items {
			if err := publish(t.Context(), q, "c", fmt.Sprint(i), nil); err != nil {
				published <- err
				return
			}
			time.Sleep(time.Millisecond) // spreads the items, so that calls end in between
		}
		published <- nil
	}()
	last := time.Now()
	for got := 0; got < items; {
		if time.Since(last) > patience {
			t.Fatalf("%d items of %d, and none within %v: the others are leased without a worker", got, items, patience)
		}
		leases, err := q.Lease(t.Context(), 4, 2*time.Millisecond)
		if errors.Is(err, queue.ErrUnavailable) {
			continue // a busy server may not answer: callers retry
		}
		must(t, err)
		for _, l := range leases {
			if l.Attempt() != 1 {
				t.Fatalf("item %s at attempt %d, want 1", l.ID(), l.Attempt())
			}
			must(t, l.Ack(t.Context()))
			got, last = got+1, time.Now()
		}
	}
	must(t, <-published)
}
