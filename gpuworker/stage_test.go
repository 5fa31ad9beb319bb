package gpuworker_test

import (
	"context"
	"testing"
	"time"

	"ddiff/gpuworker"
	"ddiff/manifest"
	"ddiff/queue"
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

// Reading takes several times as long as a lease, which is extended meanwhile.
func TestReadingExtendsLease(t *testing.T) {
	t.Parallel()
	const ackWait = 800 * time.Millisecond
	q, s := newQueue(t, queue.Config{AckWait: ackWait}), newStore(t)
	it := items(t, 1)[0]
	from := newSlow()
	cfg := config(t, q, s)
	cfg.AckWait = ackWait
	single(&cfg, func(s *gpuworker.Single) { s.Items.Sources, s.Items.Batch = from, 1 })
	publish(t, q, it)
	w := start(t, cfg)
	<-from.started
	if leased(t, q, 3*ackWait) {
		t.Error("the item was leased again while its file was read")
	}
	close(from.read)
	if r := results(t, q, 1)[it.Name]; r.Outcome != manifest.OutcomeDone || r.Attempt != 1 {
		t.Errorf("the item is %s at attempt %d", r.Outcome, r.Attempt)
	}
	w.stop(t)
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
	start(t, cfg).waitFor(t, gpuworker.ErrHung)
	if n := attempts(t, q, 1); n[0] != 2 {
		t.Errorf("attempt %d, want 2", n[0])
	}
}
