package gpuworker_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"ddiff/gpuworker"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/raster"
	"ddiff/restore/solver"
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
	if r := results(t, h.queue, 1)[it.Name]; r.Outcome != manifest.OutcomeDone || r.Worker != "healthy" || r.Attempt != 1 {
		t.Errorf("the item is %s by %s at attempt %d: %s", r.Outcome, r.Worker, r.Attempt, r.Reason)
	}
	wantEmpty(t, h.queue)
}

// noImageError is the error of a source that refuses a file by its beginning.
type noImageError struct {
	error
	digest string
}

func (e noImageError) Unwrap() error { return e.error }

func (e noImageError) Digest(context.Context) (string, error) { return e.digest, nil }

// sniffing refuses all files of an item by their beginning. A file has the digest of the item if digest is empty.
type sniffing struct {
	manifest.Files
	digest string
}

func (s sniffing) Get(ctx context.Context, path string) ([]byte, error) {
	data, err := s.Files.Get(ctx, path)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	return nil, noImageError{fmt.Errorf("read image header: %w", raster.ErrFormat), cmp.Or(s.digest, hex.EncodeToString(sum[:]))}
}

// TestNoImageFailsAtOnce: no other worker is asked about a file with the campaign's digest that is no image. A file with
// another digest may be right on another worker.
func TestNoImageFailsAtOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		digest  string
		outcome manifest.Outcome
		worker  string
	}{
		"file of the campaign": {"", manifest.OutcomeFailed, "first"},
		"another file":         {strings.Repeat("0", 64), manifest.OutcomeDone, "second"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, newStore(t), queue.Config{AckWait: patience, MaxAttempts: 1})
			it := items(t, 1)[0]
			publish(t, h.queue, it)
			first := h.begin(h.config("first", from(lying{}, 1), func(cfg *gpuworker.Config) {
				single(cfg, func(w *gpuworker.Single) { w.Items.Sources = sniffing{digest: c.digest} })
			}))
			waitUntil(t, "no item was settled", func() bool { return first.Beat().Items > 0 })
			h.begin(h.config("second", from(lying{}, 1)))
			r := results(t, h.queue, 1)[it.Name]
			if r.Outcome != c.outcome || r.Worker != c.worker || r.Attempt != 1 || strings.Contains(r.Reason, "either") {
				t.Errorf("the item is %s by %s at attempt %d: %s", r.Outcome, r.Worker, r.Attempt, r.Reason)
			}
			wantEmpty(t, h.queue)
		})
	}
}

// TestDamagedFileFailsAfterTwoOpinions: all workers read wrong bytes. A worker without others gives both opinions.
func TestDamagedFileFailsAfterTwoOpinions(t *testing.T) {
	t.Parallel()
	for name, names := range map[string][]string{"two workers": {"a", "b"}, "one worker": {"a"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, newStore(t), queue.Config{AckWait: patience, MaxAttempts: 1})
			it, gone := items(t, 1)[0], item(t, "gone", image(t, 1), nil)
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
				outcome manifest.Outcome
				reason  string
			}{{it.Name, manifest.OutcomeFailed, "its SHA-256 is"}, {"gone", manifest.OutcomeDead, "no such file"}} {
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

// TestImageAboveMemory: a worker leaves an image that it has no memory to decode or to solve to another worker.
func TestImageAboveMemory(t *testing.T) {
	t.Parallel()
	decode := func(n int64) func(*gpuworker.Config) {
		return func(cfg *gpuworker.Config) { cfg.DecodeMemory = n }
	}
	solve := func(n int64) func(*gpuworker.Config) {
		return func(cfg *gpuworker.Config) { cfg.SolveMemory = n }
	}
	const decodeReason, solveReason = "exceeds the memory for decoding", "use --fit center_crop or resize"
	for name, second := range map[string]struct {
		memory  func(int64) func(*gpuworker.Config)
		bytes   int64
		outcome manifest.Outcome
		reason  string
	}{
		"decoding, to a larger worker": {decode, 1 << 20, manifest.OutcomeDone, ""},
		"decoding, to a small worker":  {decode, 1 << 10, manifest.OutcomeFailed, decodeReason},
		"solving, to a larger worker":  {solve, 1 << 30, manifest.OutcomeDone, ""},
		"solving, to a small worker":   {solve, 1 << 10, manifest.OutcomeFailed, solveReason},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, newStore(t), queue.Config{AckWait: patience, MaxAttempts: 1})
			it := items(t, 1)[0]
			publish(t, h.queue, it)
			small := h.begin(h.config("small", from(lying{}, 1), second.memory(1<<10))) // the image needs 32 KiB
			waitUntil(t, "no item was settled", func() bool { return small.Beat().Items > 0 })
			h.begin(h.config("second", from(lying{}, 1), second.memory(second.bytes)))
			r := results(t, h.queue, 1)[it.Name]
			if r.Outcome != second.outcome || !strings.Contains(r.Reason, second.reason) {
				t.Errorf("the item is %s by %s: %s", r.Outcome, r.Worker, r.Reason)
			}
			wantEmpty(t, h.queue)
		})
	}
}

// TestSickDeviceFailsNoItem runs a worker whose device fails beside a healthy one, with one attempt.
func TestSickDeviceFailsNoItem(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{"not finite": solver.ErrDiverged, "no memory": onnxruntime.ErrMemory} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, newStore(t), queue.Config{AckWait: patience, MaxAttempts: 1})
			publish(t, h.queue, items(t, 12)...)
			sick := h.begin(h.config("sick", from(lying{}, 1)), func(w *gpuworker.Worker) { w.FailSolves(err) })
			waitUntil(t, "no item was settled", func() bool { return sick.Beat().Items >= 3 })
			h.begin(h.config("healthy", from(lying{}, 1)))
			got := results(t, h.queue, 12)
			wantDone(t, got)
			for name, r := range got {
				if r.Worker != "healthy" {
					t.Errorf("item %s is done by %s", name, r.Worker)
				}
			}
			wantEmpty(t, h.queue)
		})
	}
}

// TestSickWorkerBesideBusyWorker: a worker whose device fails every item has passed an item five times, because the other
// worker has been busy for long. It must not give the second opinion itself, unless it has restored other items.
func TestSickWorkerBesideBusyWorker(t *testing.T) {
	t.Parallel()
	for _, proven := range []bool{false, true} {
		t.Run(fmt.Sprint("proven ", proven), func(t *testing.T) {
			t.Parallel()
			h := newHost(t, newStore(t), queue.Config{AckWait: patience, MaxAttempts: 1})
			all := items(t, 2)
			asked := make(chan struct{}, 1000)
			sick := h.config("sick", from(lying{damaged: map[string]bool{all[0].Image.Path: true}}, 1), func(cfg *gpuworker.Config) {
				cfg.Peers = func(context.Context) (int, error) { asked <- struct{}{}; return 1, nil }
			})
			publish(t, h.queue, all[0])
			leases, err := h.queue.Lease(t.Context(), 1, patience)
			must(t, err)
			h.begin(sick)
			if proven {
				publish(t, h.queue, all[1])
				wantDone(t, results(t, h.queue, 1))
			}
			must(t, leases[0].ReleaseMarked(t.Context(), queue.Marks{Disputed: []string{"sick"}, Passes: 5}))
			if proven {
				got := results(t, h.queue, 2)[all[0].Name]
				if got.Outcome != manifest.OutcomeFailed || got.Worker != "sick" {
					t.Errorf("the item is %s by %s: %s", got.Outcome, got.Worker, got.Reason)
				}
				return
			}
			waitUntil(t, "the item was neither passed nor settled", func() bool {
				last, err := h.queue.LastResult(t.Context())
				must(t, err)
				return len(asked) > 0 || last > 0
			})
			h.begin(h.config("healthy", from(lying{}, 1)))
			if got := results(t, h.queue, 1)[all[0].Name]; got.Outcome != manifest.OutcomeDone || got.Worker != "healthy" {
				t.Errorf("the item is %s by %s: %s", got.Outcome, got.Worker, got.Reason)
			}
		})
	}
}
