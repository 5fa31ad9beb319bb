package cluster_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"ddiff/api"
	"ddiff/coordinator/board"
	"ddiff/coordinator/ledger"
	"ddiff/manifest"
	"ddiff/storage"
)

// until waits for a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within a minute", what)
		}
	}
}

// TestItems: the state of an item is that of windows, ledger parts, outcomes and rounds, as they come; pages in any order have each item once.
func TestItems(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.open()
	const n = 50
	id := f.campaign("night", "", func(c *manifest.Campaign) { c.Items, c.Phase = n, manifest.PhaseRunning })
	ids := f.windows(id, n, 16)
	for i, item := range ids[:30] {
		f.result(id, item, i)
	}
	f.fold(id, ids[:30])
	f.outcome(id, ids[40], manifest.OutcomeDead, "worker ended")
	items := client(t, f.serve(c, false), "")
	list := func(q api.ItemQuery) api.Items {
		t.Helper()
		page, err := items.Items(t.Context(), id, q)
		must(t, err)
		return page
	}
	if all := list(api.ItemQuery{Limit: 1000}); all.Total != n || all.Items[29].State != api.StateDone || all.Items[29].Metrics["psnr"] != 29 || all.Items[49].State != api.StatePending {
		t.Errorf("%d items, %+v", all.Total, all.Items[29])
	}
	until(t, "a dead item", func() bool { return list(api.ItemQuery{State: api.StateDead}).Total == 1 })
	f.outcome(id, ids[41], manifest.OutcomeFailed, "truncated file")
	until(t, "a failed item", func() bool { return list(api.ItemQuery{Reason: "truncated"}).Total == 1 })
	must(t, ledger.StoreRound(t.Context(), f.store, id, ledger.Round{Round: 1, Items: ids[41:42]}))
	until(t, "a retried item", func() bool { return list(api.ItemQuery{State: api.StateFailed}).Total == 0 })

	for _, order := range []string{"index", "-index", "name", "-name", "psnr", "-psnr", "-seconds"} {
		var seen []string
		for q := (api.ItemQuery{Sort: order, Limit: 7}); ; {
			page := list(q)
			for _, it := range page.Items {
				seen = append(seen, it.ID)
			}
			if q.Cursor = page.Next; q.Cursor == "" {
				break
			}
		}
		if order == "-psnr" && (seen[0] != ids[29] || seen[29] != ids[0] || seen[30] != ids[49]) {
			t.Errorf("order %s begins with %s", order, seen[0])
		}
		slices.Sort(seen)
		if len(seen) != n || len(slices.Compact(seen)) != n {
			t.Errorf("order %s: %d items", order, len(seen))
		}
	}
	for _, q := range []struct {
		query api.ItemQuery
		want  int
	}{
		{api.ItemQuery{Task: "hdr"}, n / 2}, {api.ItemQuery{Task: "hdr", State: api.StateDone}, 15}, {api.ItemQuery{Name: "image0000003"}, 2},
		{api.ItemQuery{Name: ids[5][:12]}, 1}, {api.ItemQuery{Warning: manifest.WarnWorse}, 3}, {api.ItemQuery{Warning: "any"}, 3}, {api.ItemQuery{Warning: "flat"}, 0},
		{api.ItemQuery{Worker: "gpu-1"}, 30}, {api.ItemQuery{Method: "dps"}, 0},
	} {
		if got := list(q.query); got.Total != q.want {
			t.Errorf("%+v: %d items, want %d", q.query, got.Total, q.want)
		}
	}
	detail, err := c.Item(t.Context(), id, ids[20])
	if err != nil || detail.Settings.Index != 20 || len(detail.Files) != 1 || !strings.Contains(string(detail.Result), "gpu-1") || detail.Metrics["psnr"] != 20 {
		t.Errorf("%+v, %v", detail, err)
	}
	if _, err := c.Item(t.Context(), id, ids[20][:62]+"00"); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("an unknown item: %v", err)
	}
}

// TestItemsOfEndedCampaign: the archive has no outcomes of done items; the stored results prove them.
func TestItemsOfEndedCampaign(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.open()
	id := f.campaign("night", "", func(c *manifest.Campaign) { c.Items, c.Phase = 4, manifest.PhaseFinished })
	ids := f.windows(id, 4, 4)
	f.result(id, ids[0], 0)
	record, err := board.Read(t.Context(), f.board, id)
	must(t, err)
	must(t, board.Store(t.Context(), f.store, record))
	must(t, f.board.Delete(t.Context(), manifest.KeyCampaignPrefix+id))
	page, err := c.Items(t.Context(), id, api.ItemQuery{State: api.StateDone})
	if err != nil || page.Total != 1 || page.Items[0].ID != ids[0] {
		t.Errorf("%+v, %v", page, err)
	}
}

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
func TestManyItems(t *testing.T) {
	n := manyItems(t)
	f := newFixture(t)
	results := withResults{f.store, map[string][]byte{}}
	c := f.openOver(results)
	id := f.campaign("large", "", func(c *manifest.Campaign) { c.Items, c.Phase = n, manifest.PhaseRunning })
	ids := f.windows(id, n, 4096)
	f.fold(id, ids)
	for i := range ids {
		results.byKey[id+"/"+manifest.ItemKey(ids[i], manifest.FileResult)] = encoded(t, ids[i], i*7919%n) // in no order
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	begin := time.Now()
	_, err := c.Items(t.Context(), id, api.ItemQuery{Limit: 100})
	must(t, err)
	first := time.Since(begin)
	until(t, "all results", func() bool {
		page, err := c.Items(t.Context(), id, api.ItemQuery{Limit: 1})
		must(t, err)
		return page.Read == n
	})
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
