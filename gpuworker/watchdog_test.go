package gpuworker_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ddiff/gpuworker"
	"ddiff/internal/gpuworker/guard"
	"ddiff/internal/gpuworker/workertest"
	"ddiff/internal/queue"
	"ddiff/internal/regular"
	"ddiff/internal/restore/solver"
	"ddiff/restore/item"
	"ddiff/restore/onnx"
)

// endless configures a worker, and items, with a prior that loops without end.
func endless(t *testing.T, q *queue.Queue, s store, n int) (gpuworker.Config, []item.Item) {
	t.Helper()
	p := workertest.Model(t, func(g *onnx.Graph, x onnx.Value) onnx.Value {
		final, _ := g.Loop(g.Ints(math.MaxInt64), []onnx.Value{x}, func(b *onnx.Graph, _ onnx.Value, s []onnx.Value) (next, collect []onnx.Value) {
			return []onnx.Value{b.Mul(s[0], b.Scalar(0.5))}, nil
		})
		return final[0]
	})
	cfg := config(t, q, s)
	single(&cfg, func(s *gpuworker.Single) {
		s.Items.Engine, s.Items.Batch = workertest.Engine(t, p, solver.Build{}), 1
	})
	all := items(t, n)
	for i := range all {
		all[i].Prior = regular.SHA256(p)
		must(t, all[i].Identify())
	}
	publish(t, q, all...)
	return cfg, all
}

// attempts leases n items, and returns the numbers of their attempts, ascending.
func attempts(t *testing.T, q *queue.Queue, n int) []int {
	t.Helper()
	leases, err := q.Lease(t.Context(), n, patience)
	must(t, err)
	var found []int
	for _, l := range leases {
		found = append(found, l.Attempt())
		must(t, l.Release(t.Context()))
	}
	slices.Sort(found)
	if len(found) != n {
		t.Fatalf("attempts %v of %d items", found, n)
	}
	return found
}

// A prior loops without end. Each worker interrupts the call and ends; the item in the solver counts an attempt, the other
// leased items count none, and the item is dead after its attempts, with the stage and its duration.
func TestEndlessPriorIsBuried(t *testing.T) {
	t.Parallel()
	q, s := newQueue(t, queue.Config{MaxAttempts: 2}), newStore(t)
	cfg, _ := endless(t, q, s, 3)
	cfg.Limits = guard.Limits{Solve: 100 * time.Millisecond}
	reason := start(t, cfg).waitFor(t, guard.ErrHung)
	if !strings.Contains(reason, "stage solve took ") || strings.Contains(reason, guard.ErrStuck.Error()) {
		t.Errorf("Run returned %q", reason)
	}
	if n := attempts(t, q, 3); !slices.Equal(n, []int{1, 1, 2}) {
		t.Errorf("attempts %v, want 1, 1, 2", n)
	}
	for range 2*3 - 1 { // each ends with one attempt
		start(t, cfg).waitFor(t, guard.ErrHung)
	}
	buried := dead(t, q)
	if len(buried) != 3 {
		t.Fatalf("dead items %+v, want 3", buried)
	}
	for _, l := range buried {
		if l.Attempt != 2 || !strings.HasPrefix(l.Reason, "the worker hung: stage solve took ") || !strings.HasSuffix(l.Reason, "its limit is 100ms") {
			t.Errorf("dead after %d attempts: %q", l.Attempt, l.Reason)
		}
	}
	wantEmpty(t, q)
}

// A batch hangs with a single attempt: its items run alone before one of them is dead.
func TestHungBatchRunsAlone(t *testing.T) {
	t.Parallel()
	q, s := newQueue(t, queue.Config{MaxAttempts: 1}), newStore(t)
	cfg, _ := endless(t, q, s, 2)
	cfg.Limits = guard.Limits{Solve: 50 * time.Millisecond}
	batchOf(&cfg, 2)
	start(t, cfg).waitFor(t, guard.ErrHung)
	if n := attempts(t, q, 2); !slices.Equal(n, []int{2, 2}) || len(dead(t, q)) > 0 {
		t.Errorf("attempts %v, dead items %v", n, dead(t, q))
	}
	for range 2 {
		start(t, cfg).waitFor(t, guard.ErrHung)
	}
	if n := len(dead(t, q)); n != 2 {
		t.Errorf("%d dead items, want 2", n)
	}
}

// An immediate cancellation interrupts a call of the runtime, and the worker continues.
func TestCancelInterruptsEndlessPrior(t *testing.T) {
	t.Parallel()
	q, s := newQueue(t, queue.Config{}), newStore(t)
	cfg, _ := endless(t, q, s, 2)
	lifetime, cancel := context.WithCancel(context.Background())
	work := cfg.Work.(gpuworker.Single)
	work.Items.Lifetime = lifetime
	cfg.Work = work
	w := start(t, cfg)
	waitUntil(t, "an item is leased", func() bool {
		_, inFlight, err := q.Depth(t.Context())
		must(t, err)
		return inFlight > 0
	})
	cancel()
	wantEmpty(t, q) // acknowledged
	w.stop(t)
}

// A call ignores the immediate cancellation of its campaign: the worker ends, and leaves the items to the expiry of their leases.
func TestCancelEndsStuckWorker(t *testing.T) {
	t.Parallel()
	q, s := newQueue(t, queue.Config{}), newStore(t)
	cfg, p := config(t, q, s), newPace()
	cfg.Steps, cfg.Limits = p.steps, guard.Limits{Stop: 50 * time.Millisecond}
	lifetime, cancel := context.WithCancel(context.Background())
	work := cfg.Work.(gpuworker.Single)
	work.Items.Lifetime, work.Items.Batch = lifetime, 1
	cfg.Work = work
	publish(t, q, items(t, 2)...)
	w := start(t, cfg)
	<-p.made // the device hangs here
	cancel()
	if reason := w.waitFor(t, guard.ErrStuck); !strings.Contains(reason, "stage solve did not end within") {
		t.Errorf("Run returned %q", reason)
	}
	if _, held, err := q.Depth(t.Context()); err != nil || held == 0 {
		t.Errorf("%d items are leased: %v", held, err)
	}
	close(p.next)
}

// A worker drains while its prior loops without end: the call is interrupted, and the attempt does not count.
func TestDrainInterruptsEndlessPrior(t *testing.T) {
	t.Parallel()
	q, s := newQueue(t, queue.Config{}), newStore(t)
	cfg, _ := endless(t, q, s, 1)
	cfg.Limits.Drain = 100 * time.Millisecond
	w := start(t, cfg)
	waitUntil(t, "the item is leased", func() bool {
		_, inFlight, err := q.Depth(t.Context())
		must(t, err)
		return inFlight > 0
	})
	w.stop(t)
	if n := attempts(t, q, 1); n[0] != 1 {
		t.Errorf("attempt %d, want 1", n[0])
	}
}

// A device hangs and cannot be interrupted: Run returns, and the beat and the health of the worker name the stage. Another worker
// finishes the items when their leases have expired. The first worker does no harm when its device continues.
func TestStuckWorkerLosesItems(t *testing.T) {
	t.Parallel()
	// The other worker extends its leases in time, also beside many tests.
	q, s := newQueue(t, queue.Config{AckWait: 3 * time.Second}), newStore(t)
	all := items(t, 3)
	cfg, p := config(t, q, s), newPace()
	cfg.Name, cfg.Steps = "stuck", p.steps
	cfg.Limits = guard.Limits{Solve: 100 * time.Millisecond, Stop: 50 * time.Millisecond}
	// No stage reaches its limit before the device hangs.
	still, hangs := time.Now(), atomic.Bool{}
	cfg.Now = func() time.Time {
		if hangs.Load() {
			return time.Now()
		}
		return still
	}
	batchOf(&cfg, 1)
	warm(t, cfg.Work.(gpuworker.Single).Items.Engine, all[0])
	publish(t, q, all...)
	w, r := begin(t, cfg)
	must(t, w.Health())
	<-p.made // the device hangs here
	hangs.Store(true)
	r.waitFor(t, guard.ErrStuck)
	if beat := w.Beat(); w.Health() == nil || !strings.Contains(beat.Hung, "stage solve took") {
		t.Errorf("health %v, beat %+v", w.Health(), beat)
	}
	other := config(t, q, s)
	other.Name = "other"
	second := start(t, other)
	results(t, q, 3)

	close(p.next)
	for _, it := range all {
		if r := wantStored(t, s, it.ID); r.Worker != "other" {
			t.Errorf("the result of %s is by %s", it.Name, r.Worker)
		}
	}
	wantEmpty(t, q) // the other worker also takes an item whose lease it lost on a busy machine
	second.stop(t)
}
