package gpuworker_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"ddiff/gpuworker"
	"ddiff/internal/gpuworker/guard"
	"ddiff/internal/queue"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// slow is a source that blocks until read is closed.
type slow struct {
	manifest.Files
	started, read chan struct{}
}

func newSlow() *slow { return &slow{started: make(chan struct{}, 16), read: make(chan struct{})} }

func (s *slow) Get(ctx context.Context, path string) ([]byte, error) {
	s.started <- struct{}{}
	select {
	case <-s.read:
		return s.Files.Get(ctx, path)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// leased reports whether an item is leased within a time.
func leased(t *testing.T, q *queue.Queue, within time.Duration) bool {
	t.Helper()
	for begin := time.Now(); time.Since(begin) < within; {
		leases, err := q.Lease(t.Context(), 1, within/4)
		must(t, err)
		if len(leases) > 0 {
			return true
		}
	}
	return false
}

// withLeases runs a test with leases of a time, and again with longer ones if it returns an error: on a slow machine an
// extension may come after the end of a short lease.
func withLeases(t *testing.T, ackWait time.Duration, test func(ackWait time.Duration) error) {
	t.Helper()
	for limit := 8 * ackWait; ; ackWait *= 2 {
		err := test(ackWait)
		if err == nil {
			return
		}
		if ackWait >= limit {
			t.Fatal(err)
		}
		t.Logf("with leases of %v: %v", ackWait, err)
	}
}

// Reading takes several times as long as a lease, which is extended meanwhile.
func TestReadingExtendsLease(t *testing.T) {
	t.Parallel()
	withLeases(t, 800*time.Millisecond, func(ackWait time.Duration) error {
		q, s := newQueue(t, queue.Config{AckWait: ackWait}), newStore(t)
		it := items(t, 1)[0]
		from := newSlow()
		cfg := config(t, q, s)
		cfg.AckWait = ackWait
		single(&cfg, func(s *gpuworker.Single) { s.Items.Sources, s.Items.Batch = from, 1 })
		publish(t, q, it)
		w := start(t, cfg)
		<-from.started
		again := leased(t, q, 3*ackWait)
		close(from.read)
		if again {
			w.drain()
			return errors.New("the item was leased again while its file was read")
		}
		r := results(t, q, 1)[it.Name]
		w.stop(t)
		if r.Outcome != item.OutcomeDone || r.Attempt != 1 {
			return fmt.Errorf("the item is %s at attempt %d", r.Outcome, r.Attempt)
		}
		return nil
	})
}

// Reading hangs: the worker ends, and the attempt at the item counts.
func TestHungSourceEndsWorker(t *testing.T) {
	t.Parallel()
	q, s := newQueue(t, queue.Config{}), newStore(t)
	from := newSlow()
	cfg := config(t, q, s)
	cfg.Limits.Prepare = 100 * time.Millisecond
	single(&cfg, func(s *gpuworker.Single) { s.Items.Sources, s.Items.Batch = from, 1 })
	publish(t, q, items(t, 1)...)
	start(t, cfg).waitFor(t, guard.ErrHung)
	if n := attempts(t, q, 1); n[0] != 2 {
		t.Errorf("attempt %d, want 2", n[0])
	}
}
