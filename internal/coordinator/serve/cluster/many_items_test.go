//go:build !race

package cluster_test

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"time"

	"ddiff/api"
	"ddiff/internal/record"
	"ddiff/restore/item"
	"ddiff/storage"
)

// withResults is a store that has the results of a large campaign in memory.
type withResults struct {
	storage.Store
	byKey map[string][]byte
}

// Get implements storage.Store.
func (s withResults) Get(ctx context.Context, key string) ([]byte, error) {
	if data, ok := s.byKey[key]; ok {
		return data, nil
	}
	return s.Store.Get(ctx, key)
}

// TestManyItems: pages of a large campaign are quick in every order, and its view is small. DDIFF_API_ITEMS sets the number of items.
// The race detector would take ten times as long.
func TestManyItems(t *testing.T) {
	n := numberOf(t, "DDIFF_API_ITEMS", 10_000)
	f := newFixture(t)
	results := withResults{f.store, map[string][]byte{}}
	c := f.openOver(results)
	id := f.campaign("large", "", func(c *record.Campaign) { c.Phase = record.PhaseRunning })
	ids := f.windows(id, n, 4096)
	f.fold(id, ids)
	for i := range ids {
		results.byKey[id+"/"+item.Key(ids[i], item.FileResult)] = encoded(t, ids[i], i*7919%n) // in no order
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	begin := time.Now()
	_, err := c.Items(t.Context(), id, api.ItemQuery{Limit: 100})
	must(t, err)
	first := time.Since(begin)
	for known := 0; known < n; { // a busy machine needs minutes for all
		until(t, "more results", func() bool {
			page, err := c.Items(t.Context(), id, api.ItemQuery{Limit: 1})
			must(t, err)
			before := known
			known = page.Read
			return known > before
		})
	}
	read := time.Since(begin)
	items := client(t, f.serve(c, false), "")
	var times []time.Duration
	for i := range 300 {
		q := api.ItemQuery{Limit: 100, Sort: []string{"index", "name", "-name", "psnr", "-psnr", "-seconds"}[i%6]}
		if i%4 == 3 {
			q.Name = "99"
		}
		for range 3 {
			begin := time.Now()
			page, err := items.Items(t.Context(), id, q)
			must(t, err)
			times = append(times, time.Since(begin))
			if q.Cursor = page.Next; q.Cursor == "" {
				break
			}
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	slices.Sort(times)
	p99, memory := times[len(times)*99/100], int64(after.HeapAlloc-before.HeapAlloc)>>20
	t.Logf("items=%d first=%v read=%v p50=%v p99=%v heap_mib=%d", n, first.Round(time.Millisecond), read.Round(time.Millisecond), times[len(times)/2].Round(100*time.Microsecond), p99.Round(100*time.Microsecond), memory)
	if limit := time.Second; p99 > limit { // a busy machine takes some 50 times as long as an idle one
		t.Errorf("p99 %v, want at most %v", p99, limit)
	}
	if memory > int64(n)*400>>20+16 {
		t.Errorf("the view of %d items takes %d MiB", n, memory)
	}
}
