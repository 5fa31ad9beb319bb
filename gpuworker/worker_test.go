package gpuworker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ddiff/internal/gpuworker/workertest"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/restore/item"
	"ddiff/restore/method"
	"ddiff/restore/parameter"
	"ddiff/storage"
)

// counted is a store that counts its calls.
type counted struct {
	*storage.Dir
	reads, writes, others atomic.Int32
}

func (c *counted) Get(ctx context.Context, key string) ([]byte, error) {
	c.reads.Add(1)
	return c.Dir.Get(ctx, key)
}

func (c *counted) Put(ctx context.Context, key string, data []byte) error {
	c.writes.Add(1)
	return c.Dir.Put(ctx, key, data)
}

func (c *counted) Create(ctx context.Context, key string, data []byte) error {
	c.writes.Add(1)
	return c.Dir.Create(ctx, key, data)
}

func (c *counted) Delete(ctx context.Context, key string) error {
	c.others.Add(1)
	return c.Dir.Delete(ctx, key)
}

// TestWorkerRestoresBatch: a batch is restored at the costs of an item in docs/cluster.md.
func TestWorkerRestoresBatch(t *testing.T) {
	t.Parallel()
	q, s := newQueue(t, queue.Config{}), &counted{Dir: newStore(t)}
	all := items(t, 3)
	publish(t, q, all...)
	w := start(t, config(t, q, s))
	got := results(t, q, 3)
	w.stop(t)
	wantEmpty(t, q)
	// Result twice and checkpoint, each not there yet; truth, measurement as array and picture, trace, restored image, result.
	if r, w, o := s.reads.Load(), s.writes.Load(), s.others.Load(); r != 3*3 || w != 3*6 || o != 0 {
		t.Errorf("%d reads, %d writes and %d other calls of the store for 3 items, want 3 and 6 for each", r, w, o)
	}
	for _, it := range all {
		r := wantStored(t, s, it.ID)
		// DDiff makes one evaluation per step. Its data term calls A and its Jacobian, its curve A.
		if want := (item.Cost{Network: steps, Operator: 3 * steps}); r.Cost != want {
			t.Errorf("cost %+v, want %+v", r.Cost, want)
		}
		if r.Batch != 3 || r.Steps != steps || r.Attempt != 1 || r.Worker != "tester" || !r.Metrics.Has("psnr") {
			t.Errorf("item %s: %+v", it.Name, r)
		}
		if got[it.Name].Outcome != item.OutcomeDone || got[it.Name].Metrics["psnr"] != r.Metrics["psnr"] {
			t.Errorf("item %s: the event is %+v, the stored result %+v", it.Name, got[it.Name], r)
		}
	}
}

// broken is a store in which a number of writes of one item fail.
type broken struct {
	*storage.Dir
	id    string
	times atomic.Int32
}

var errDisk = errors.New("the disk is on fire")

func (b *broken) Put(ctx context.Context, key string, data []byte) error {
	if strings.Contains(key, b.id) && b.times.Add(-1) >= 0 {
		return errDisk
	}
	return b.Dir.Put(ctx, key, data)
}

func (b *broken) Create(ctx context.Context, key string, data []byte) error {
	if strings.Contains(key, b.id) && b.times.Add(-1) >= 0 {
		return errDisk
	}
	return b.Dir.Create(ctx, key, data)
}

// The store fails for one item of a batch: the other items are done, and this item is retried and finally buried.
func TestItemOfFailingStoreIsRetriedAndBuried(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		times   int32
		outcome item.Outcome
		attempt int
	}{{"once", 1, item.OutcomeDone, 2}, {"always", 1000, item.OutcomeDead, 3}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			q := newQueue(t, queue.Config{MaxAttempts: 3})
			all := items(t, 4)
			bad := all[1]
			s := &broken{Dir: newStore(t), id: bad.ID}
			s.times.Store(c.times)
			publish(t, q, all...)
			w := start(t, config(t, q, s))
			got := results(t, q, 4)
			w.stop(t)
			wantEmpty(t, q)
			for _, it := range all {
				if it.ID != bad.ID || c.outcome == item.OutcomeDone {
					wantStored(t, s, it.ID)
				}
				if it.ID != bad.ID && (got[it.Name].Outcome != item.OutcomeDone || got[it.Name].Attempt != 1) {
					t.Errorf("item %s: %+v", it.Name, got[it.Name])
				}
			}
			if r := got[bad.Name]; r.Outcome != c.outcome || r.Attempt != c.attempt {
				t.Errorf("the failing item is %s at attempt %d, want %s at %d", r.Outcome, r.Attempt, c.outcome, c.attempt)
			}
			if r := got[bad.Name]; c.outcome == item.OutcomeDead && (r.Worker != "tester" || !strings.Contains(r.Reason, errDisk.Error())) {
				t.Errorf("the dead item is %+v", r)
			}
		})
	}
}

func TestItemsThatCannotBeRestored(t *testing.T) {
	t.Parallel()
	q, s := newQueue(t, queue.Config{MaxAttempts: 2}), newStore(t)
	changed := newItem(t, "changed", image(t, 1), nil)
	must(t, os.WriteFile(changed.Image.Path, []byte("another picture"), 0o644))
	gone := newItem(t, "gone", image(t, 2), nil)
	must(t, os.Remove(gone.Image.Path))
	nan := newItem(t, "nan", nil, measurement(t, "nan.npy", 0)) // its bytes are replaced below
	foreign := newItem(t, "foreign", image(t, 3), nil)
	foreign.Prior = strings.Repeat("ab", 32)
	wrong := newItem(t, "wrong", image(t, 4), nil)
	wrong.Params = map[string]float64{"factor": 3}
	must(t, wrong.Identify())
	nan.Measurement = source(t, "nan.npy", []byte("no array"))
	must(t, nan.Identify())
	good := items(t, 1)[0]
	publish(t, q, changed, gone, nan, foreign, wrong, good)
	must(t, q.PublishBatch(t.Context(), []queue.Work{{Class: "class", ID: "unreadable", Payload: []byte("{")}}))

	w := start(t, config(t, q, s))
	got := results(t, q, 7)
	w.stop(t)
	wantEmpty(t, q)
	for name, want := range map[string]struct {
		outcome item.Outcome
		reason  []string
	}{
		"changed":    {item.OutcomeFailed, []string{changed.Image.Path, "its SHA-256 is", "submit the campaign again"}},
		"gone":       {item.OutcomeFailed, []string{gone.Image.Path, "no such file"}},
		"nan":        {item.OutcomeFailed, []string{nan.Measurement.Path}},
		"foreign":    {item.OutcomeDead, []string{"needs the prior abababababab"}},
		"wrong":      {item.OutcomeFailed, []string{"factor"}},
		"unreadable": {item.OutcomeFailed, []string{"read work item unreadable"}},
		"image0":     {item.OutcomeDone, nil},
	} {
		r := got[name]
		if r.Outcome != want.outcome {
			t.Errorf("item %s is %q (%s), want %s", name, r.Outcome, r.Reason, want.outcome)
		}
		for _, part := range want.reason {
			if !strings.Contains(r.Reason, part) {
				t.Errorf("item %s: the reason %q lacks %q", name, r.Reason, part)
			}
		}
	}
}

// diverging makes steps that grow everything by a large factor: what begins at 1 stays
// within the range of float32 to the end, what begins near its limit does not.
func diverging(s method.Settings) method.Settings {
	s = s.With("gradient", parameter.Word(method.GradientSquared)).With("gamma0", parameter.Number(200))
	return s.With("a", parameter.Number(1)).With("b", parameter.Number(1)).With("t0", parameter.Number(0))
}

// A diverging item does not change the other item of its batch.
func TestDivergingItemFailsAlone(t *testing.T) {
	t.Parallel()
	good := newItem(t, "good", nil, measurement(t, "good.npy", 0.5), diverging)
	bad := newItem(t, "bad", nil, measurement(t, "bad.npy", 1e15), diverging)
	for _, it := range []*item.Item{&good, &bad} { // their values are meant
		it.MeasurementRange = &item.ValueRange{-1, 1}
		must(t, it.Identify())
	}
	bad.Sigma = 1e15
	must(t, bad.Identify())

	// The reference: the good item alone.
	q, reference := newQueue(t, queue.Config{}), newStore(t)
	publish(t, q, good)
	w := start(t, config(t, q, reference))
	results(t, q, 1)
	w.stop(t)
	want := wantStored(t, reference, good.ID)

	for _, c := range []struct {
		name  string
		drain bool // after the first step, so that both items resume from checkpoints
	}{{"from the beginning", false}, {"from checkpoints", true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			q, s := newQueue(t, queue.Config{}), newStore(t)
			publish(t, q, good, bad)
			for attempt := 1; c.drain; attempt++ {
				cfg, p := config(t, q, s), newPace()
				cfg.Steps = p.steps
				w := start(t, cfg)
				<-p.made
				w.drain()
				close(p.next)
				w.wait(t)
				n := checkpoints(t, s)
				if n == 2 {
					break
				}
				if attempt == 5 {
					t.Fatalf("%d checkpoints, want 2", n)
				}
				q, s = newQueue(t, queue.Config{}), newStore(t) // on a busy machine the worker leased one item alone
				publish(t, q, good, bad)
			}
			w := start(t, config(t, q, s))
			got := results(t, q, 2)
			w.stop(t)
			if r := got["bad"]; r.Outcome != item.OutcomeFailed || !strings.Contains(r.Reason, "diverged") || !strings.Contains(r.Reason, "gamma0") {
				t.Errorf("the bad item is %s: %s", r.Outcome, r.Reason)
			} else if r.Seconds == 0 {
				t.Error("the result of the bad item has not the time of its steps") // its steps would leave the total of a progress
			}
			r := wantStored(t, s, good.ID)
			if r.Metrics["residual"] != want.Metrics["residual"] {
				t.Errorf("the residual is %g, alone it is %g", r.Metrics["residual"], want.Metrics["residual"])
			}
			if r.Batch != 1 {
				t.Errorf("it was solved in a batch of %d", r.Batch)
			}
			if !bytes.Equal(get(t, s, good.ID, item.FileTrace), get(t, reference, good.ID, item.FileTrace)) ||
				!bytes.Equal(samples(t, s, good.ID), samples(t, reference, good.ID)) {
				t.Error("image or trace differ from the reference")
			}
		})
	}
}

// TestCompactResultEvents expects short events that a decoder of complete results reads.
func TestCompactResultEvents(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	p := c.prior(workertest.Share(t, 0.1))
	q := c.open("compact", queue.Config{})
	publish(t, q, itemsFor(t, p, 3)...)
	c.submit("compact", func(r *record.Campaign) { r.Prior = p })
	cfg := c.worker(2)
	cfg.WholeResults = false
	w := start(t, cfg)
	n := 0
	for event, err := range q.Results(t.Context(), 0) {
		must(t, err)
		var r item.Result
		must(t, json.Unmarshal(event.Payload, &r))
		if r.Outcome != item.OutcomeDone || time.Since(r.Finished) > patience || len(event.Payload) > 80 {
			t.Errorf("%d bytes: %s", len(event.Payload), event.Payload)
		}
		if n++; n == 3 {
			break
		}
	}
	w.stop(t)
}
