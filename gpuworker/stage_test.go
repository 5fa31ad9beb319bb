package gpuworker_test

import (
	"context"
	"testing"
	"time"

	"ddiff/gpuworker"
	"ddiff/manifest"
	"ddiff/queue"
)

// slow are sources that take their time.
type slow struct {
	manifest.Files
	begun, read chan struct{}
}

func newSlow() *slow { return &slow{begun: make(chan struct{}, 16), read: make(chan struct{})} }

func (s *slow) Get(ctx context.Context, path string) ([]byte, error) {
	s.begun <- struct{}{}
	select {
	case <-s.read:
		return s.Files.Get(ctx, path)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// handedOut tells whether an item is handed out again within a time.
func handedOut(t *testing.T, q *queue.Queue, within time.Duration) bool {
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

// TestSlowSource reads for several times as long as a lease lasts: it is extended meanwhile.
func TestSlowSource(t *testing.T) {
	t.Parallel()
	const ackWait = 400 * time.Millisecond
	q, s := newQueue(t, queue.Config{AckWait: ackWait}), newStore(t)
	it := items(t, 1)[0]
	from := newSlow()
	cfg := config(t, q, s)
	cfg.AckWait = ackWait
	single(&cfg, func(s *gpuworker.Single) { s.Items.Sources, s.Items.Batch = from, 1 })
	publish(t, q, it)
	w := start(t, cfg)
	<-from.begun
	if handedOut(t, q, 3*ackWait) {
		t.Error("the item was handed out again while its file was read")
	}
	close(from.read)
	if r := results(t, q, 1)[it.Name]; r.Outcome != manifest.OutcomeDone || r.Attempt != 1 {
		t.Errorf("the item is %s at attempt %d", r.Outcome, r.Attempt)
	}
	w.stop(t)
}

// TestHungSource reads for ever: after the limit of a stage another worker gets the item.
func TestHungSource(t *testing.T) {
	t.Parallel()
	const ackWait = 200 * time.Millisecond
	q, s := newQueue(t, queue.Config{AckWait: ackWait, MaxAttempts: 100}), newStore(t)
	from := newSlow()
	cfg := config(t, q, s)
	cfg.AckWait, cfg.StageLimit = ackWait, 3*ackWait
	single(&cfg, func(s *gpuworker.Single) { s.Items.Sources, s.Items.Batch = from, 1 })
	publish(t, q, items(t, 1)...)
	begin := time.Now()
	w := start(t, cfg)
	<-from.begun
	if !handedOut(t, q, patience) {
		t.Error("the item was never handed out again")
	}
	if took := time.Since(begin); took < 3*ackWait {
		t.Errorf("the item was handed out again after %v, before the limit", took)
	}
	w.stop(t) // which gives up reading
}
