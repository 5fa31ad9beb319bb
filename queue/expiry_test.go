package queue_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"ddiff/queue"
)

// TestLeaseLosesNothingAtItsEnd lets items arrive while one short call of Lease after the
// other ends: each item must be in one of them, at its first attempt.
func TestLeaseLosesNothingAtItsEnd(t *testing.T) {
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
			time.Sleep(time.Millisecond) // not to wait for anything: so that calls end in between
		}
		published <- nil
	}()
	begin := time.Now()
	for got := 0; got < items; {
		if time.Since(begin) > patience {
			t.Fatalf("%d items of %d within %v: the others wait for their lease to end", got, items, patience)
		}
		leases, err := q.Lease(t.Context(), 4, 2*time.Millisecond)
		if errors.Is(err, queue.ErrUnavailable) {
			continue // a server that is busy does not answer every time: callers ask again
		}
		must(t, err)
		for _, l := range leases {
			if l.Attempt() != 1 {
				t.Fatalf("item %s comes at attempt %d", l.ID(), l.Attempt())
			}
			must(t, l.Ack(t.Context()))
			got++
		}
	}
	must(t, <-published)
}
