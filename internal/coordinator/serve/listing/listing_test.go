package listing_test

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"ddiff/api"
	"ddiff/internal/coordinator/board/boardtest"
	"ddiff/internal/coordinator/serve/listing"
	"ddiff/internal/restore/photograph"
	"ddiff/restore/item"
)

// result has a PSNR, or none for NaN.
func result(id string, psnr float64, codes ...string) *item.Result {
	r := &item.Result{Item: item.Item{ID: id}, Worker: "gpu-1", Seconds: 2}
	if !math.IsNaN(psnr) {
		r.Metrics = item.Metrics{"psnr": psnr}
	}
	for _, code := range codes {
		r.Warnings = append(r.Warnings, item.Warning{Code: code})
	}
	return r
}

// filled is a table of n items in no order, some of which have equal names, the same PSNR, or none.
func filled(n int) *listing.Table {
	random := rand.New(rand.NewPCG(1, 2))
	t := listing.New()
	var items []item.Item
	for i := range n {
		items = append(items, item.Item{ID: boardtest.ID(i), Name: fmt.Sprintf("image %03d", random.IntN(n/3)), Task: []string{"hdr", "denoise"}[i%2], Method: "ddiff"})
	}
	t.Add(items[:n/2])
	t.Add(items[n/2:])
	for i := range n {
		switch random.IntN(4) {
		case 0:
			t.SetState(boardtest.ID(i), api.StateFailed, "truncated file")
		case 1:
			t.SetResult(result(boardtest.ID(i), math.NaN()))
		case 2:
			t.SetResult(result(boardtest.ID(i), float64(random.IntN(20)), photograph.WarnWorse))
		}
	}
	return t
}

// pages returns the ids of all pages.
func pages(t *testing.T, table *listing.Table, q api.ItemQuery) []string {
	t.Helper()
	ids := []string{}
	for {
		page, err := table.Query(q)
		if err != nil {
			t.Fatal(err)
		}
		for _, it := range page.Items {
			ids = append(ids, it.ID)
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			if page.Total != len(ids) {
				t.Errorf("%+v: %d items on the pages, total %d", q, len(ids), page.Total)
			}
			return ids
		}
	}
}

// TestOrders: the pages of every order are those of a sorted list; items without a value come last in both directions.
func TestOrders(t *testing.T) {
	t.Parallel()
	const n = 1500 // more than are collected between two cuts
	table := filled(n)
	all := make([]api.Item, n)
	for i := range all {
		all[i] = table.Item(i)
	}
	value := map[string]func(it api.Item) (v float32, text string, missing bool){
		"index": func(it api.Item) (float32, string, bool) { return float32(it.Index), "", false },
		"name":  func(it api.Item) (float32, string, bool) { return 0, it.Name, false },
		"psnr":  func(it api.Item) (float32, string, bool) { v, ok := it.Metrics["psnr"]; return v, "", !ok },
	}
	for order, of := range value {
		for _, minus := range []string{"", "-"} {
			want := slices.Clone(all)
			slices.SortFunc(want, func(a, b api.Item) int {
				va, ta, ma := of(a)
				vb, tb, mb := of(b)
				if ma != mb {
					return map[bool]int{true: 1, false: -1}[ma] // whatever the direction
				}
				c := cmp.Or(cmp.Compare(va, vb), strings.Compare(ta, tb), cmp.Compare(a.Index, b.Index))
				if minus != "" {
					c = -c
				}
				return c
			})
			for _, state := range []api.State{"", api.StateDone, api.StateFailed} {
				var ids []string
				for _, it := range want {
					if state == "" || it.State == state {
						ids = append(ids, it.ID)
					}
				}
				if got := pages(t, table, api.ItemQuery{Sort: minus + order, State: state, Limit: 70}); !slices.Equal(got, ids) {
					t.Errorf("order %s%s of state %q: %d items, want %d; the first are %.8s and %.8s", minus, order, state, len(got), len(ids), got[0], ids[0])
				}
			}
		}
	}
}

// TestCounts: Done and Read follow the states; an item that runs again has no result.
func TestCounts(t *testing.T) {
	t.Parallel()
	table := listing.New()
	table.Add([]item.Item{{ID: boardtest.ID(0), Name: "a"}, {ID: boardtest.ID(1), Name: "b"}, {ID: boardtest.ID(0), Name: "again"}})
	counts := func(done, read, unread int) {
		t.Helper()
		page, err := table.Query(api.ItemQuery{Limit: 10})
		ids, next := table.Unread(0, 10)
		if err != nil || page.Done != done || page.Read != read || len(ids) != unread || next != 3 || page.Listed != 3 {
			t.Errorf("done %d, read %d, unread %d up to %d, %v; want %d, %d and %d", page.Done, page.Read, len(ids), next, err, done, read, unread)
		}
	}
	counts(0, 0, 0)
	table.SetState(boardtest.ID(0), api.StateDone, "") // two rows
	counts(2, 0, 2)
	table.SetResult(result(boardtest.ID(0), 30))
	table.SetState(boardtest.ID(1), api.StateDone, "")
	counts(3, 2, 1)
	table.SetUnreadable(boardtest.ID(1))
	counts(3, 3, 0)
	table.Refresh(func(id string) (api.State, string) {
		if id == boardtest.ID(1) {
			return api.StateDead, "worker ended"
		}
		return api.StatePending, ""
	})
	counts(0, 0, 0)
	if it := table.Item(1); it.State != api.StateDead || it.Reason != "worker ended" {
		t.Errorf("%+v", it)
	}
	if at, ok := table.Find(boardtest.ID(0)); !ok || at != 0 {
		t.Errorf("the first row of an id is %d, %v", at, ok)
	}
	table.SetState("no id", api.StateDone, "")
	counts(0, 0, 0)
}

// TestFilters: filters hold together; names are no patterns.
func TestFilters(t *testing.T) {
	t.Parallel()
	table := listing.New()
	var items []item.Item
	for i := range 40 {
		items = append(items, item.Item{ID: boardtest.ID(i), Name: fmt.Sprintf("100%% [%d].*", i), Task: "hdr", Method: "dps"})
	}
	table.Add(items)
	for i := range items {
		table.SetResult(result(boardtest.ID(i), math.Inf(1), fmt.Sprintf("code-%d", i)))
	}
	for _, c := range []struct {
		q    api.ItemQuery
		want int
	}{
		{api.ItemQuery{Task: "hdr", Method: "dps", Worker: "gpu-1"}, 40}, {api.ItemQuery{Task: "dps"}, 0}, {api.ItemQuery{Name: ".*"}, 40}, {api.ItemQuery{Name: "[1"}, 11},
		{api.ItemQuery{Warning: "code-3"}, 1}, {api.ItemQuery{Warning: "any"}, 40}, {api.ItemQuery{Warning: "code-40"}, 0}, {api.ItemQuery{Name: boardtest.ID(7)}, 1},
		{api.ItemQuery{Name: boardtest.ID(7)[:9]}, 1}, {api.ItemQuery{Reason: "x"}, 0},
	} {
		c.q.Limit = 7
		if got := pages(t, table, c.q); len(got) != c.want {
			t.Errorf("%+v: %d items, want %d", c.q, len(got), c.want)
		}
	}
	if it := table.Item(0); len(it.Metrics) != 0 {
		t.Errorf("an infinite value is no JSON: %v", it.Metrics)
	}
}

// TestWrongQueries: an unknown order and a cursor of another order or of nobody are errors of the caller.
func TestWrongQueries(t *testing.T) {
	t.Parallel()
	table := filled(30)
	page, err := table.Query(api.ItemQuery{Sort: "name", Limit: 3})
	if err != nil || page.Next == "" {
		t.Fatal(err)
	}
	for _, q := range []api.ItemQuery{
		{Sort: "password"}, {Sort: "--name"}, {Sort: "-name", Cursor: page.Next}, {Cursor: page.Next}, {Sort: "name", Cursor: "???"}, {Sort: "name", Cursor: "bnVsbA"},
	} {
		if _, err := table.Query(q); !errors.Is(err, api.ErrInvalid) {
			t.Errorf("%+v: %v", q, err)
		}
	}
}

// TestThroughput: intervals grow with the time that they cover, and have each result once.
func TestThroughput(t *testing.T) {
	t.Parallel()
	table := listing.New()
	if got := table.Throughput(); len(got.Items) != 0 {
		t.Errorf("without results: %+v", got)
	}
	var items []item.Item
	for i := range 101 {
		items = append(items, item.Item{ID: boardtest.ID(i), Name: "a"})
	}
	table.Add(items)
	begin := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	for i := range 100 {
		r := result(boardtest.ID(i), 30)
		r.Finished = begin.Add(time.Duration(i) * time.Minute / 20)
		table.SetResult(r)
	}
	table.SetState(boardtest.ID(100), api.StateFailed, "truncated file")
	got := table.Throughput()
	if got.From != begin || got.Seconds != 5 || len(got.Items) != 60 || got.Items[0] != 2 || got.Items[59] != 1 || got.Read != 100 || got.Done != 100 {
		t.Errorf("five minutes: %+v", got)
	}
	late := result(boardtest.ID(100), 30)
	late.Finished = begin.Add(48 * time.Hour)
	table.SetResult(late)
	got = table.Throughput()
	sum := 0
	for _, n := range got.Items {
		sum += n
	}
	if got.Seconds != 1280 || len(got.Items) > 240 || sum != 101 || got.From.After(begin) {
		t.Errorf("two days: %d intervals of %d s from %v with %d results", len(got.Items), got.Seconds, got.From, sum)
	}
}
