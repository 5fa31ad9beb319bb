package gpuworker_test

import (
	"slices"
	"testing"
	"time"

	"ddiff/internal/queue"
	"ddiff/restore/item"
)

// pace is a Steps function with which a test waits for each step and delays the next.
type pace struct {
	made chan struct{}
	next chan struct{}
}

func newPace() *pace { return &pace{make(chan struct{}), make(chan struct{})} }

func (p *pace) steps(int) {
	p.made <- struct{}{}
	<-p.next
}

// A worker drains during a batch: its items return to the queue at once, without an attempt, and the next worker resumes them.
func TestDrainSavesAndResumesItems(t *testing.T) {
	t.Parallel()
	all := items(t, 5)
	q, reference := newQueue(t, queue.Config{}), newStore(t)
	publish(t, q, all...)
	w := start(t, config(t, q, reference))
	results(t, q, 5)
	w.stop(t)

	// A batch of three items is on the device; two items wait.
	q, s := newQueue(t, queue.Config{MaxAttempts: 1}), newStore(t)
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
		if _, err := s.Get(t.Context(), item.Key(it.ID, item.FileResult)); err == nil {
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
		t.Errorf("the items returned after %v, as if their leases had expired", took)
	}
	wantEmpty(t, q)
	sum := 0
	for _, n := range made {
		sum += n
	}
	if want := 5*steps - 3*2; sum != want {
		t.Errorf("%d steps after the drain, want %d", sum, want)
	}
	for _, it := range all {
		if r := wantStored(t, s, it.ID); r.Attempt != 1 {
			t.Errorf("item %s is at attempt %d", it.Name, r.Attempt)
		}
		if !slices.Equal(get(t, s, it.ID, item.FileData), get(t, reference, it.ID, item.FileData)) ||
			!slices.Equal(samples(t, s, it.ID), samples(t, reference, it.ID)) {
			t.Errorf("item %s differs from the item of an uninterrupted worker", it.Name)
		}
	}
	if n := checkpoints(t, s); n != 0 {
		t.Errorf("%d checkpoints remain", n)
	}
}

// An item has used all attempts without an answer, but no worker ran it alone: it gets another attempt.
func TestItemWithoutEvidenceGetsAnotherAttempt(t *testing.T) {
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
	if r := results(t, q, 1)[it.Name]; r.Outcome != item.OutcomeDone || r.Attempt != 3 {
		t.Errorf("the item is %q at attempt %d: %s", r.Outcome, r.Attempt, r.Reason)
	}
	w.stop(t)
	wantEmpty(t, q)
}

// The queue is removed and created again many times while a worker runs.
func TestWorkerSurvivesRemovedQueue(t *testing.T) {
	t.Parallel()
	server, err := queue.StartEmbedded(t.Context(), queue.EmbeddedConfig{Dir: t.TempDir()})
	must(t, err)
	t.Cleanup(server.Stop)
	nc, err := server.Connect()
	must(t, err)
	open := func() *queue.Queue {
		q, err := queue.Open(t.Context(), nc, queue.Config{Campaign: "test", AckWait: patience})
		must(t, err)
		return q
	}
	q, s := open(), newStore(t)
	cfg := config(t, q, s)
	cfg.Idle = 10 * time.Millisecond
	w := start(t, cfg)
	for range 20 {
		must(t, q.Remove(t.Context()))
		q = open()
	}
	all := items(t, 2)
	publish(t, q, all...)
	results(t, q, 2)
	w.stop(t)
	for _, it := range all {
		wantStored(t, s, it.ID)
	}
}
