package gpuworker_test

import (
	"testing"

	"ddiff/gpuworker"
	"ddiff/internal/queue"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/prior"
	"ddiff/internal/restore/solver"
	"ddiff/restore"
	"ddiff/restore/item"
)

// Batches of four exceed memory with a prior that fits two images: they are halved, no item fails, and the next batch
// starts with two.
func TestBatchThatExceedsMemoryIsHalved(t *testing.T) {
	t.Parallel()
	p, err := prior.Load("hungry.onnx", hungryPrior(t, 1))
	must(t, err)
	e := restore.NewEngine(onnxtest.Runtime(t), p, restore.Config{Build: solver.Build{Streams: 1}})
	t.Cleanup(func() { must(t, e.Close()) })
	var all []item.Item
	for _, it := range items(t, 8) {
		it.Prior = p.SHA256
		must(t, it.Identify())
		all = append(all, it)
	}
	q, s := newQueue(t, queue.Config{MaxAttempts: 1}), newStore(t)
	publish(t, q, all...)
	cfg := config(t, q, s)
	single(&cfg, func(s *gpuworker.Single) { s.Items.Engine = e })
	made := 0
	cfg.Steps = func(n int) { made += n }
	w := start(t, cfg)
	got := results(t, q, 8)
	w.stop(t)
	wantEmpty(t, q)
	for _, it := range all {
		r := wantStored(t, s, it.ID)
		if r.Batch != 2 || r.Attempt != 1 || got[it.Name].Outcome != item.OutcomeDone {
			t.Errorf("item %s is %s in a batch of %d at attempt %d", it.Name, r.Outcome, r.Batch, r.Attempt)
		}
	}
	if made != 8*steps {
		t.Errorf("%d steps were made, want %d", made, 8*steps)
	}
}
