package queue_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"ddiff/queue"
)

const shortWait = 500 * time.Millisecond

func TestExpiredLeaseIsRedelivered(t *testing.T) {
	t.Parallel()
	q := newQueue(t, queue.Config{AckWait: shortWait, MaxAttempts: 2})
	must(t, publish(t.Context(), q, "c", "1", []byte("p")))
	begin := time.Now()
	for attempt := 1; attempt <= 4; attempt++ { // MaxAttempts and the two spare deliveries
		l := lease(t, q)
		if l.Attempt() != attempt || l.Last() != (attempt >= 2) || l.Exhausted() != (attempt > 2) {
			t.Fatalf("attempt %d, last %t, exhausted %t, want attempt %d", l.Attempt(), l.Last(), l.Exhausted(), attempt)
		}
		// The first delivery is later than begin, and each other one is AckWait later than the one before.
		if took, least := time.Since(begin), time.Duration(attempt-1)*shortWait; took < least {
			t.Fatalf("attempt %d after %v, before %v", attempt, took, least)
		}
	}
	wantNone(t, q, 3*shortWait)
}

func TestExtendRenewsLease(t *testing.T) {
	t.Parallel()
	q := newQueue(t, queue.Config{AckWait: shortWait, MaxAttempts: 1000})
	must(t, publish(t.Context(), q, "c", "1", nil))
	held := wantRenewed(t, q, shortWait, 3*shortWait, shortWait/10, func() []*queue.Lease { return []*queue.Lease{lease(t, q)} })
	if again := lease(t, q); again.Attempt() != held[0].Attempt()+1 { // no further Extend
		t.Fatalf("attempt %d, want %d", again.Attempt(), held[0].Attempt()+1)
	}
}

// wantRenewed takes leases, extends them for a time, and checks that no item is delivered to q meanwhile, for wait after each
// extension. When the machine is so slow that leases may have ended before their extension, wantRenewed begins again. It
// returns the leases.
func wantRenewed(t *testing.T, q *queue.Queue, ackWait, during, wait time.Duration, take func() []*queue.Lease) []*queue.Lease {
	t.Helper()
	for deadline := time.Now().Add(3 * patience); time.Now().Before(deadline); {
		renewed := time.Now() // the leases last until ackWait later, or longer
		leases := take()
		var again []*queue.Lease
		for begin := time.Now(); time.Since(renewed) < ackWait; {
			if time.Since(begin) >= during {
				return leases
			}
			now := time.Now()
			must(t, queue.Extend(t.Context(), leases...))
			if time.Since(renewed) >= ackWait {
				break
			}
			renewed = now
			var err error
			again, err = q.Lease(t.Context(), 1, wait)
			must(t, err)
			if len(again) > 0 && time.Since(renewed) < ackWait {
				t.Fatalf("item %s was delivered again, attempt %d", again[0].ID(), again[0].Attempt())
			}
		}
		for _, l := range append(leases, again...) {
			must(t, l.Retry(t.Context(), 0))
		}
	}
	t.Fatal("timeout: the machine is too slow to extend the leases")
	return nil
}

func TestAckAfterRedelivery(t *testing.T) {
	t.Parallel()
	q := newQueue(t, queue.Config{AckWait: shortWait})
	must(t, publish(t.Context(), q, "c", "1", nil))
	slow, quick := lease(t, q), lease(t, q)
	if quick.Attempt() != 2 {
		t.Fatalf("attempt %d, want 2", quick.Attempt())
	}
	must(t, slow.Ack(t.Context()))
	wantDepth(t, q, 0, 0)
	must(t, queue.Extend(t.Context(), quick))
	must(t, quick.Ack(t.Context()))
	wantNone(t, q, 2*shortWait)
	wantDepth(t, q, 0, 0)
}

func TestRetryAndRelease(t *testing.T) {
	t.Parallel()
	q := newQueue(t, queue.Config{})
	must(t, publish(t.Context(), q, "c", "1", nil))
	const delay = 400 * time.Millisecond
	begin := time.Now()
	must(t, lease(t, q).Retry(t.Context(), delay))
	wantDepth(t, q, 0, 1)
	l := lease(t, q)
	if took := time.Since(begin); took < delay || l.Attempt() != 2 {
		t.Fatalf("attempt %d after %v, want 2 after %v", l.Attempt(), took, delay)
	}
	must(t, l.Release(t.Context()))
	wantDepth(t, q, 1, 0)
	mustBe(t, l.Ack(t.Context()), queue.ErrSettled)
	if l = lease(t, q); l.Attempt() != 2 || l.Last() {
		t.Fatalf("attempt %d after Release, want 2 again", l.Attempt())
	}
	must(t, l.Retry(t.Context(), 0))
	if l = lease(t, q); l.Attempt() != 3 || !l.Last() {
		t.Fatalf("attempt %d after Retry, want 3, the last one", l.Attempt())
	}
	must(t, l.Ack(t.Context()))
	wantDepth(t, q, 0, 0)
}

func TestLeaseBatches(t *testing.T) {
	t.Parallel()
	q := newQueue(t, queue.Config{})
	for i := range 5 {
		must(t, publish(t.Context(), q, "c", fmt.Sprint(i), nil))
	}
	first, err := q.Lease(t.Context(), 3, patience)
	must(t, err)
	if len(first) != 3 {
		t.Fatalf("%d items, want 3", len(first))
	}
	wantDepth(t, q, 2, 3) // no prefetch
	rest, err := q.Lease(t.Context(), 3, time.Second)
	must(t, err)
	if len(rest) != 2 {
		t.Fatalf("%d items, want the remaining 2", len(rest))
	}
	const wait = 200 * time.Millisecond
	begin := time.Now()
	wantNone(t, q, wait)
	if took := time.Since(begin); took < wait*9/10 || took > 10*time.Second {
		t.Errorf("the call took %v, want about %v", took, wait)
	}
	for _, n := range []int{0, -1} {
		_, err := q.Lease(t.Context(), n, time.Second)
		mustBe(t, err, queue.ErrConfig)
	}
	_, err = q.Lease(t.Context(), 1, -1)
	mustBe(t, err, queue.ErrConfig)
}

// Without a wait, Lease returns the available items, also those that are delivered again.
func TestLeaseWithoutWait(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	q := open(t, server, queue.Config{})
	wantNone(t, q, 0)
	for i := range 3 {
		must(t, publish(t.Context(), q, "c", fmt.Sprint(i), nil))
	}
	wantDepth(t, q, 3, 0)
	leases, err := q.Lease(t.Context(), 8, 0)
	must(t, err)
	if len(leases) != 3 {
		t.Fatalf("%d items, want the 3 available", len(leases))
	}
	must(t, leases[0].Ack(t.Context()))
	must(t, leases[1].Retry(t.Context(), 0))
	again, err := q.Lease(t.Context(), 8, 0)
	must(t, err)
	if len(again) != 1 || again[0].Attempt() != 2 {
		t.Fatalf("%d items after a retry, want 1", len(again))
	}
	// The other two leases expire, after a time that is short from now on: the calls above may take longer.
	open(t, server, queue.Config{AckWait: shortWait})
	for deadline, n := time.Now().Add(patience), 0; n < 2 && time.Now().Before(deadline); {
		expired, err := q.Lease(t.Context(), 8, 0)
		must(t, err)
		for _, l := range expired {
			must(t, l.Ack(t.Context()))
			n++
		}
	}
	wantDepth(t, q, 0, 0)
}

func TestLeaseOfBatchIsLimitedToHalfOfAckWait(t *testing.T) {
	t.Parallel()
	q := newQueue(t, queue.Config{AckWait: shortWait})
	must(t, publish(t.Context(), q, "c", "1", nil))
	wantDepth(t, q, 1, 0) // the consumer learns of an item later than the stream
	leases, err := q.Lease(t.Context(), 8, patience)
	must(t, err)
	if len(leases) != 1 || leases[0].Attempt() != 1 {
		t.Fatalf("%d leases, want 1", len(leases))
	}
}

func TestLeaseEndsWithItsContext(t *testing.T) {
	t.Parallel()
	q := newQueue(t, queue.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		leases, err := q.Lease(ctx, 1, time.Hour)
		if len(leases) != 0 || ctx.Err() == nil || err == nil {
			t.Errorf("%d leases, error %v", len(leases), err)
		}
	})
	cancel()
	wg.Wait()
	_, err := q.Lease(ctx, 1, time.Hour)
	mustBe(t, err, context.Canceled)
	// An abandoned request leases no item.
	must(t, publish(t.Context(), q, "c", "1", nil))
	if l := lease(t, q); l.Attempt() != 1 {
		t.Fatalf("attempt %d, want 1", l.Attempt())
	}
}

func TestManyWorkers(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	const items, workers = 200, 8
	batch := make([]queue.Work, items)
	for i := range batch {
		batch[i] = queue.Work{Class: "c", ID: fmt.Sprint(i)}
	}
	must(t, open(t, server, queue.Config{}).PublishBatch(t.Context(), batch))
	var mu sync.Mutex
	done := map[string]int{}
	var wg sync.WaitGroup
	for range workers {
		q := open(t, server, queue.Config{})
		wg.Go(func() {
			for {
				leases, err := q.Lease(t.Context(), 4, 500*time.Millisecond)
				if err != nil || len(leases) == 0 {
					if err != nil {
						t.Errorf("Lease: %v", err)
					}
					return
				}
				for _, l := range leases {
					if err := l.Ack(t.Context()); err != nil {
						t.Errorf("Ack: %v", err)
					}
					mu.Lock()
					done[l.ID()]++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	for id, n := range done {
		if n != 1 {
			t.Errorf("item %s was delivered %d times", id, n)
		}
	}
	if len(done) != items {
		t.Errorf("%d items done, want %d", len(done), items)
	}
}
