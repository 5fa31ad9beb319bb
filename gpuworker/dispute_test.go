package gpuworker_test

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"ddiff/gpuworker"
	"ddiff/internal/queue"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// lying is a source of a worker: it returns wrong bytes for the files in damaged, and refuses those in denied.
type lying struct {
	manifest.Files
	damaged, denied map[string]bool
}

func (l lying) Get(ctx context.Context, path string) ([]byte, error) {
	if l.denied[path] {
		return nil, fmt.Errorf("get %s: %w", path, fs.ErrPermission)
	}
	data, err := l.Files.Get(ctx, path)
	if err == nil && l.damaged[path] {
		data[len(data)/2] ^= 1
	}
	return data, err
}

// from sets the source of a worker, single items, and the number of other workers.
func from(s lying, peers int) func(*gpuworker.Config) {
	return func(cfg *gpuworker.Config) {
		cfg.ProbePause = time.Millisecond
		cfg.Peers = func(context.Context) (int, error) { return peers, nil }
		single(cfg, func(w *gpuworker.Single) { w.Items.Sources, w.Items.Batch = s, 1 })
	}
}

// TestWrongDigestAsksAnotherWorker: one worker reads wrong bytes, and another reads the right ones.
func TestWrongDigestAsksAnotherWorker(t *testing.T) {
	t.Parallel()
	h := newHost(t, newStore(t), queue.Config{AckWait: patience, MaxAttempts: 1})
	it := items(t, 1)[0]
	publish(t, h.queue, it)
	wrong := map[string]bool{it.Image.Path: true}
	sick := h.begin(h.config("sick", from(lying{damaged: wrong}, 1)))
	waitUntil(t, "no item was settled", func() bool { return sick.Beat().Items > 0 })
	h.begin(h.config("healthy", from(lying{}, 1)))
	if r := results(t, h.queue, 1)[it.Name]; r.Outcome != item.OutcomeDone || r.Worker != "healthy" || r.Attempt != 1 {
		t.Errorf("the item is %s by %s at attempt %d: %s", r.Outcome, r.Worker, r.Attempt, r.Reason)
	}
	wantEmpty(t, h.queue)
}

// TestDamagedFileFailsAfterTwoOpinions: all workers read wrong bytes. A worker without others gives both opinions.
func TestDamagedFileFailsAfterTwoOpinions(t *testing.T) {
	t.Parallel()
	for name, names := range map[string][]string{"two workers": {"a", "b"}, "one worker": {"a"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, newStore(t), queue.Config{AckWait: patience, MaxAttempts: 1})
			it, gone := items(t, 1)[0], newItem(t, "gone", image(t, 1), nil)
			gone.Image.Path += ".gone"
			must(t, gone.Identify())
			publish(t, h.queue, it, gone)
			source := lying{damaged: map[string]bool{it.Image.Path: true}}
			for _, w := range names {
				h.begin(h.config(w, from(source, len(names)-1)))
			}
			got := results(t, h.queue, 2)
			for _, want := range []struct {
				name    string
				outcome item.Outcome
				reason  string
			}{{it.Name, item.OutcomeFailed, "its SHA-256 is"}, {"gone", item.OutcomeFailed, "no such file"}} {
				r := got[want.name]
				if r.Outcome != want.outcome || !strings.Contains(r.Reason, want.reason) ||
					(len(names) == 2) != strings.Contains(r.Reason, "could not restore it either") {
					t.Errorf("item %s is %s: %s", want.name, r.Outcome, r.Reason)
				}
			}
			wantEmpty(t, h.queue)
		})
	}
}
