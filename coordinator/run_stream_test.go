//go:build !race

package coordinator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"ddiff/internal/record"
	"ddiff/internal/regular"
	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/storage"
)

// streamRows is the size of the dataset of TestRunStreams.
const streamRows = 4000

// TestRunStreams restores a dataset whose rows state their digests. The first item must be finished before the dataset
// is read to its end, and the run must not keep a list of items or of results: either takes more than 1,000 bytes per
// item.
// The race detector would take ten times as long.
func TestRunStreams(t *testing.T) {
	const perItem, slack = 250, 2 << 20 // measured for 8,000 rows: 2 MiB in all
	var before uint64
	first := make(chan struct{})
	announceFirst := sync.OnceFunc(func() { close(first) })
	identities := map[string]bool{}
	c := newLocalCampaign(t, t.TempDir(), "hdr")
	store := &compactStore{Dir: newStore(t), done: map[string]bool{}}
	c.store = store
	c.rows = func(ctx context.Context, _ manifest.Dataset, _ func(manifest.Skip)) iter.Seq2[manifest.Row, error] {
		return func(yield func(manifest.Row, error) bool) {
			before = heap() // prior and queue server are open
			for i := range streamRows {
				if i == streamRows/4 {
					select {
					case <-first:
					case <-ctx.Done():
						return
					case <-time.After(patience):
						t.Error("no item is finished while the dataset is read")
					}
				}
				n := i
				if i%10 == 9 {
					n = i / 3 // the image of another window
				}
				row := manifest.Row{
					Index: i, Name: fmt.Sprintf("row%05d", i), Image: "/nowhere.png",
					ImageSHA256: regular.SHA256(fmt.Append(nil, n)), Width: 32, Height: 32,
				}
				identities[row.ImageSHA256] = true
				if !yield(row, nil) {
					return
				}
			}
		}
	}
	var announced [streamRows]int
	c.finished = func(res item.Result, _ bool) {
		announced[res.Item.Index]++
		announceFirst()
	}
	r := c.start()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	worked := make(chan error, 1)
	go func() { worked <- r.restoreAll(ctx, store) }()
	must(t, r.await())
	stop()
	must(t, <-worked)
	r.wantCounts(record.Counts{Items: streamRows, Done: streamRows})
	for i, n := range announced {
		if n != 1 {
			t.Fatalf("row %d is announced %d times", i, n)
		}
	}
	if len(store.done) != len(identities) {
		t.Errorf("%d items were restored, want %d", len(store.done), len(identities))
	}

	r.server.Stop() // its buffers are not the run's
	limit := before + streamRows*perItem + slack
	used := heap()
	t.Logf("the heap grew by %d KiB", (int64(used)-int64(before))>>10)
	if used > limit {
		t.Errorf("the heap grew by %d KiB in the run, at most %d KiB are allowed", (used-before)>>10, (limit-before)>>10)
	}
	_, err := r.Close(t.Context())
	must(t, err)
	data, err := store.Get(t.Context(), "results.csv")
	must(t, err)
	if lines := strings.Count(string(data), "\n"); lines != 1+streamRows {
		t.Errorf("results.csv has %d lines, want a header and %d rows", lines, streamRows)
	}
}

// heap is the number of bytes in use after garbage collection; pools need several.
func heap() uint64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// restoreAll restores all items as a worker does, until ctx ends.
func (r *localRun) restoreAll(ctx context.Context, store storage.Store) error {
	for ctx.Err() == nil {
		leases, err := r.queue.Lease(context.WithoutCancel(ctx), 256, 200*time.Millisecond)
		if err != nil {
			return err
		}
		for _, l := range leases {
			var it item.Item
			if err := json.Unmarshal(l.Payload(), &it); err != nil {
				return err
			}
			data, err := json.Marshal(result(it, item.OutcomeDone, ""))
			if err != nil {
				return err
			}
			// The lease must be acknowledged also when this item ended the run.
			settle := context.WithoutCancel(ctx)
			if err := store.Create(settle, item.Key(it.ID, item.FileResult), data); err != nil {
				return err
			}
			if err := l.PublishResult(settle, data); err != nil {
				return err
			}
			if err := l.Ack(settle); err != nil {
				return err
			}
		}
	}
	return nil
}

// compactStore stores only the identities of results.
type compactStore struct {
	*storage.Dir

	mu   sync.Mutex
	done map[string]bool
}

// identityIn returns the identity in the key of a result.
func identityIn(key string) (string, bool) {
	rest, items := strings.CutPrefix(key, "items/")
	id, isResult := strings.CutSuffix(rest, "/"+item.FileResult)
	return id, items && isResult
}

func (s *compactStore) Create(ctx context.Context, key string, data []byte) error {
	id, ok := identityIn(key)
	if !ok {
		return s.Dir.Create(ctx, key, data)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done[id] {
		return storage.ErrExists
	}
	s.done[id] = true
	return nil
}

func (s *compactStore) Get(ctx context.Context, key string) ([]byte, error) {
	id, ok := identityIn(key)
	if !ok {
		return s.Dir.Get(ctx, key)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.done[id] {
		return nil, storage.ErrNotFound
	}
	return json.Marshal(result(item.Item{ID: id}, item.OutcomeDone, ""))
}
