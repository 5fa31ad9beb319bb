package gpuworker_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"ddiff/gpuworker"
	"ddiff/manifest"
	"ddiff/queue"
)

// pace is a Steps function that lets the test see each step and hold it up.
type pace struct {
	made chan struct{}
	next chan struct{}
}

func newPace() *pace { return &pace{make(chan struct{}), make(chan struct{})} }

func (p *pace) steps(int) {
	p.made <- struct{}{}
	<-p.next
}

// TestDrain ends a worker in the middle: items come back to the queue at once, and the next
// worker goes on where it stopped.
func TestDrain(t *testing.T) {
	t.Parallel()
	all := items(t, 5)
	q, reference := newQueue(t, queue.Config{}), newStore(t)
	publish(t, q, all...)
	w := start(t, config(t, q, reference))
	results(t, q, 5)
	w.stop(t)

	// One batch of three is on the device, the other two items wait.
	q, s := newQueue(t, queue.Config{}), newStore(t)
	publish(t, q, all...)
	cfg, p := config(t, q, s), newPace()
	batchOf(&cfg, 3)
	cfg.Steps = p.steps
	w = start(t, cfg)
	<-p.made
	p.next <- struct{}{}
	<-p.made
	w.drain()
	close(p.next)
	w.wait(t)
	if n := checkpoints(t, s); n != 3 {
		t.Errorf("%d checkpoints, want 3", n)
	}
	for _, it := range all {
		if _, err := s.Get(t.Context(), manifest.ItemKey(it.ID, manifest.FileResult)); err == nil {
			t.Errorf("item %s has a result", it.Name)
		}
	}

	var made []int
	cfg = config(t, q, s)
	batchOf(&cfg, 3)
	cfg.Steps = func(n int) { made = append(made, n) }
	begun := time.Now()
	w = start(t, cfg)
	results(t, q, 5)
	w.stop(t)
	if took := time.Since(begun); took > patience/2 {
		t.Errorf("the items came back after %v, as if their leases had run out", took)
	}
	wantEmpty(t, q)
	sum := 0
	for _, n := range made {
		sum += n
	}
	if want := 5*steps - 3*2; sum != want {
		t.Errorf("%d steps were made after the drain, want %d", sum, want)
	}
	for _, it := range all {
		wantStored(t, s, it.ID)
		if !slices.Equal(get(t, s, it.ID, manifest.FileData), get(t, reference, it.ID, manifest.FileData)) ||
			!slices.Equal(samples(t, s, it.ID), samples(t, reference, it.ID)) {
			t.Errorf("item %s differs from that of an undisturbed worker", it.Name)
		}
	}
	if n := checkpoints(t, s); n != 0 {
		t.Errorf("%d checkpoints are left", n)
	}
}

// TestDrainIdle ends a worker that has nothing to do.
func TestDrainIdle(t *testing.T) {
	t.Parallel()
	cfg := config(t, newQueue(t, queue.Config{}), newStore(t))
	cfg.Idle = patience
	begun := time.Now()
	start(t, cfg).stop(t)
	if took := time.Since(begun); took > patience/2 {
		t.Errorf("it took %v", took)
	}
}

// TestHeartbeat solves for several times as long as a lease lasts: as long as steps are made,
// nobody else gets the item.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	const ackWait = time.Second
	q, s := newQueue(t, queue.Config{AckWait: ackWait}), newStore(t)
	it := items(t, 1)[0]
	cfg, p := config(t, q, s), newPace()
	cfg.AckWait, cfg.Steps = ackWait, p.steps
	// Compiling the solver is not what is measured.
	warm(t, cfg.Work.(gpuworker.Single).Items.Engine, it)
	publish(t, q, it)
	w := start(t, cfg)
	<-p.made // only this worker has it now

	other := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			leases, err := q.Lease(ctx, 1, ackWait)
			if len(leases) > 0 {
				other <- leases[0].Release(context.Background())
				t.Error("the item was handed out again")
				return
			}
			if err != nil && ctx.Err() == nil {
				other <- err
				return
			}
		}
		other <- nil
	}()
	// A step takes under half a lease, all of them three leases.
	step := time.NewTicker(3 * ackWait / steps)
	defer step.Stop()
	for range steps - 1 {
		<-step.C
		p.next <- struct{}{}
		<-p.made
	}
	p.next <- struct{}{}
	if r := results(t, q, 1)[it.Name]; r.Outcome != manifest.OutcomeDone || r.Attempt != 1 {
		t.Errorf("the item is %s at attempt %d", r.Outcome, r.Attempt)
	}
	w.stop(t)
	cancel()
	must(t, <-other)
	wantEmpty(t, q)
}

// TestHungDevice makes no steps: another worker gets the item and finishes it, and the one
// that hung does no harm when it wakes up.
func TestHungDevice(t *testing.T) {
	t.Parallel()
	const ackWait = 500 * time.Millisecond
	q, s := newQueue(t, queue.Config{AckWait: ackWait, MaxAttempts: 100}), newStore(t)
	it := items(t, 1)[0]
	hung, p := config(t, q, s), newPace()
	hung.Name, hung.AckWait, hung.Steps = "hung", ackWait, p.steps
	publish(t, q, it)
	first := start(t, hung)
	<-p.made // and there it stands

	cfg := config(t, q, s)
	cfg.Name = "other"
	second := start(t, cfg)
	r := results(t, q, 1)[it.Name]
	if r.Worker != "other" || r.Attempt < 2 {
		t.Errorf("it was done by %s at attempt %d", r.Worker, r.Attempt)
	}
	second.stop(t)
	stored := get(t, s, it.ID, manifest.FileResult)

	close(p.next)
	for range steps - 1 {
		<-p.made
	}
	// It may have leased the item a second time, while it stood.
	rest := make(chan struct{})
	go func() {
		defer close(rest)
		for range p.made {
		}
	}()
	first.stop(t)
	close(p.made)
	<-rest
	if got := wantStored(t, s, it.ID); got.Worker != "other" || string(get(t, s, it.ID, manifest.FileResult)) != string(stored) {
		t.Errorf("the result is now by %s", got.Worker)
	}
	wantEmpty(t, q)
}

// TestCrashedWorkers hands out an item as often as it may be tried, to nobody who answers:
// a worker then gives it up instead of trying.
func TestCrashedWorkers(t *testing.T) {
	t.Parallel()
	q, s := newQueue(t, queue.Config{AckWait: 100 * time.Millisecond, MaxAttempts: 2}), newStore(t)
	it := items(t, 1)[0]
	publish(t, q, it)
	for range 2 {
		leases, err := q.Lease(t.Context(), 1, patience)
		must(t, err)
		if len(leases) != 1 {
			t.Fatalf("%d leases", len(leases))
		}
	}
	w := start(t, config(t, q, s))
	if r := results(t, q, 1)[it.Name]; r.Outcome != manifest.OutcomeDead {
		t.Errorf("the item is %q: %s", r.Outcome, r.Reason)
	}
	w.stop(t)
	letters := deadLetters(t, q)
	if len(letters) != 1 || letters[0].Attempts != 3 || letters[0].Reason != "earlier attempts ended without an answer: the worker crashed or hung" {
		t.Errorf("dead letters %+v", letters)
	}
}

// TestReset begins the campaign anew under a worker's hands, many times.
func TestReset(t *testing.T) {
	t.Parallel()
	q, s := newQueue(t, queue.Config{}), newStore(t)
	cfg := config(t, q, s)
	cfg.Idle = 10 * time.Millisecond
	w := start(t, cfg)
	for range 50 {
		must(t, q.Reset(t.Context()))
	}
	all := items(t, 2)
	publish(t, q, all...)
	results(t, q, 2)
	w.stop(t)
	for _, it := range all {
		wantStored(t, s, it.ID)
	}
}
