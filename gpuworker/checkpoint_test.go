package gpuworker_test

import (
	"slices"
	"testing"

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
