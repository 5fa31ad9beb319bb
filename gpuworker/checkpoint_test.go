package gpuworker_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"ddiff/manifest"
	"ddiff/queue"
)

// An item with a checkpoint of another item, or with a truncated one, starts from the beginning.
func TestForeignAndTruncatedCheckpoints(t *testing.T) {
	t.Parallel()
	all := items(t, 3)
	q, reference := newQueue(t, queue.Config{}), newStore(t)
	publish(t, q, all...)
	w := start(t, config(t, q, reference))
	results(t, q, 3)
	w.stop(t)

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

	own, err := s.Get(t.Context(), "checkpoints/"+all[0].ID)
	must(t, err)
	must(t, s.Put(t.Context(), "checkpoints/"+all[1].ID, own))
	must(t, s.Put(t.Context(), "checkpoints/"+all[2].ID, own[:len(own)/2]))

	made := 0
	cfg = config(t, q, s)
	cfg.Steps = func(n int) { made += n }
	w = start(t, cfg)
	results(t, q, 3)
	w.stop(t)
	if want := 3*steps - 2; made != want {
		t.Errorf("%d steps after the drain, want %d: one item resumes after two steps", made, want)
	}
	for _, it := range all {
		wantStored(t, s, it.ID)
		if !slices.Equal(get(t, s, it.ID, manifest.FileData), get(t, reference, it.ID, manifest.FileData)) ||
			!slices.Equal(samples(t, s, it.ID), samples(t, reference, it.ID)) {
			t.Errorf("item %s differs from the item of an uninterrupted worker", it.Name)
		}
	}
	if n := checkpoints(t, s); n != 0 {
		t.Errorf("%d checkpoints remain", n)
	}
}

// The time of an item includes that of the steps before its checkpoint.
func TestTimeOfResumedItem(t *testing.T) {
	t.Parallel()
	all := items(t, 1)
	q, s := newQueue(t, queue.Config{}), newStore(t)
	publish(t, q, all...)
	var later atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	cfg, p := config(t, q, s), newPace()
	cfg.Steps, cfg.Now = p.steps, now
	w := start(t, cfg)
	<-p.made
	later.Add(int64(time.Hour))
	w.drain()
	close(p.next)
	w.wait(t)
	cfg = config(t, q, s)
	cfg.Now = now
	w = start(t, cfg)
	if r := results(t, q, 1)[all[0].Name]; r.Seconds < 3600 || r.Seconds > 7200 {
		t.Errorf("the item took %g s, want an hour and the rest of its steps", r.Seconds)
	}
	w.stop(t)
}
