package cluster_test

import (
	"context"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ddiff/api"
	"ddiff/coordinator/serve/cluster"
	"ddiff/coordinator/shard"
	"ddiff/manifest"
	"ddiff/restore/method"
	"ddiff/restore/operator"
	"ddiff/storage"
)

// slowRecord is a store in which the record of one campaign does not come.
type slowRecord struct {
	storage.Store
	asked chan struct{}
}

// Get implements storage.Store.
func (s slowRecord) Get(ctx context.Context, key string) ([]byte, error) {
	if strings.HasPrefix(key, "campaigns/slow/") {
		close(s.asked)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.Store.Get(ctx, key)
}

// TestSlowRecord: a list that waits for the store does not delay the lists of other campaigns.
func TestSlowRecord(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	store := slowRecord{f.store, make(chan struct{})}
	c := f.openOver(store)
	id := f.campaign("night", "", func(c *manifest.Campaign) { c.Items = 2 })
	f.windows(id, 2, 2)
	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer cancel()
	waiting.Go(func() {
		if _, err := c.Items(ctx, "slow", api.ItemQuery{}); err == nil {
			t.Error("a list without a record")
		}
	})
	<-store.asked
	limited, stop := context.WithTimeout(ctx, 20*time.Second)
	defer stop()
	if page, err := c.Items(limited, id, api.ItemQuery{Limit: 10}); err != nil || page.Total != 2 {
		t.Errorf("beside it: %+v, %v", page, err)
	}
}

// TestCountsAtOnce: of many checks only some count their datasets at once; the others answer without numbers.
func TestCountsAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var now, most atomic.Int32
	counted := make(chan struct{})
	c := cluster.New(cluster.Config{
		Board: f.board, Catalogue: shard.Catalogue{Methods: method.Builtin(), Operators: operator.Builtin()},
		Rows: func(_ context.Context, _ manifest.Dataset, _ func(string)) iter.Seq2[manifest.Row, error] {
			return func(func(manifest.Row, error) bool) {
				n := now.Add(1)
				defer now.Add(-1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				<-counted
			}
		},
	})
	t.Cleanup(c.Close)
	var checks sync.WaitGroup
	var uncounted atomic.Int32
	for range 10 {
		checks.Go(func() {
			checked, err := c.Check(t.Context(), []byte(campaignFile), api.Order{})
			if err != nil || len(checked.Problems) > 0 {
				t.Errorf("%+v, %v", checked, err)
			}
			if checked.Rows == nil && checked.More {
				uncounted.Add(1)
			}
		})
	}
	until(t, "answers without numbers", func() bool { return uncounted.Load() == 6 })
	close(counted)
	checks.Wait()
	if most.Load() != 4 {
		t.Errorf("%d datasets were counted at once, want 4", most.Load())
	}
}

// heldWindows is a store that holds the reading of a campaign's windows until it is released, at most for a while.
type heldWindows struct {
	storage.Store
	campaign        string
	asked, released chan struct{}
}

// Get implements storage.Store.
func (s heldWindows) Get(ctx context.Context, key string) ([]byte, error) {
	if strings.HasPrefix(key, shard.Key(s.campaign, 0)) {
		close(s.asked)
		select {
		case <-s.released:
		case <-time.After(20 * time.Second):
		}
	}
	return s.Store.Get(ctx, key)
}

// TestEstimatesAtOnce: an estimate that waits for the store does not delay others.
func TestEstimatesAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	photos := t.TempDir()
	must(t, os.WriteFile(filepath.Join(photos, "a.png"), []byte("x"), 0o644))
	id := f.campaign("night", "", func(c *manifest.Campaign) { c.Items = 2 })
	f.windows(id, 2, 2)
	store := heldWindows{f.store, id, make(chan struct{}), make(chan struct{})}
	c := f.openOver(store)
	check := func(task string) {
		file := []byte("name: next\ndataset: {path: " + photos + "}\ntasks: [" + task + "]\n")
		if out, err := c.Check(t.Context(), file, api.Order{}); err != nil || out.Estimate == nil {
			t.Errorf("%s: %+v, %v", task, out, err)
		}
	}
	held := make(chan struct{})
	go func() {
		defer close(held)
		check("denoise")
	}()
	<-store.asked
	check("hdr")
	select {
	case <-held:
		t.Error("an estimate waited for another one")
	default:
	}
	close(store.released)
	<-held
}
