package cluster_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ddiff/api"
	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/board/boardtest"
	"ddiff/internal/coordinator/board/recordtest"
	"ddiff/internal/coordinator/ledger"
	"ddiff/internal/coordinator/shard"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/internal/restore/photograph"
	"ddiff/restore/item"
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
	id := f.campaign("night", "", func(c *record.Campaign) { c.Phase = record.PhaseRunning })
	ids := f.windows(id, n, 16)
	for i, item := range ids[:30] {
		f.result(id, item, i)
	}
	f.fold(id, ids[:30])
	f.outcome(id, ids[40], item.OutcomeDead, "worker ended")
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
	f.outcome(id, ids[41], item.OutcomeFailed, "truncated file")
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
		{api.ItemQuery{Name: ids[5][:12]}, 1}, {api.ItemQuery{Warning: photograph.WarnWorse}, 3}, {api.ItemQuery{Warning: "any"}, 3}, {api.ItemQuery{Warning: "flat"}, 0},
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

// TestItemsSettledEarly: an outcome that comes before the view has read the window or the round of its item counts all the same.
func TestItemsSettledEarly(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.open()
	id := f.campaign("night", "", func(c *record.Campaign) { c.Phase = record.PhaseRunning })
	ids := f.windows(id, 4, 2)
	second, err := f.store.Get(t.Context(), shard.Key(id, 1))
	must(t, err)
	must(t, f.store.Delete(t.Context(), shard.Key(id, 1)))
	f.outcome(id, ids[0], item.OutcomeFailed, "truncated")
	total := func(q api.ItemQuery) int {
		t.Helper()
		page, err := c.Items(t.Context(), id, q)
		must(t, err)
		return page.Total
	}
	until(t, "a failed item", func() bool { return total(api.ItemQuery{Reason: "truncated"}) == 1 })
	must(t, ledger.StoreRound(t.Context(), f.store, id, ledger.Round{Round: 1, Items: ids[:1]}))
	f.outcomeOfRound(id, ids[0], item.OutcomeFailed, "still truncated", 1)
	must(t, f.store.Put(t.Context(), shard.Key(id, 1), second))
	f.outcome(id, ids[2], item.OutcomeDone, "")
	f.result(id, ids[2], 2)
	until(t, "the new window", func() bool { return total(api.ItemQuery{}) == 4 })
	until(t, "an item of the new window", func() bool { return total(api.ItemQuery{State: api.StateDone}) == 1 })
	until(t, "an item of the new round", func() bool { return total(api.ItemQuery{Reason: "still truncated"}) == 1 })
}

// TestItemsOfEndedCampaign: the archive has no outcomes of done items; the stored results prove them.
func TestItemsOfEndedCampaign(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.open()
	id := f.campaign("night", "", func(c *record.Campaign) { c.Phase = record.PhaseFinished })
	ids := f.windows(id, 4, 4)
	f.result(id, ids[0], 0)
	must(t, f.board.Delete(t.Context(), record.KeyCampaignPrefix+id))
	page, err := c.Items(t.Context(), id, api.ItemQuery{State: api.StateDone})
	if err != nil || page.Total != 1 || page.Items[0].ID != ids[0] {
		t.Errorf("%+v, %v", page, err)
	}
}

// TestItemsOfReplacedWindow: the list has the items that a window has after a retry of its unreadable rows, and those of a campaign that was
// deleted and submitted again.
func TestItemsOfReplacedWindow(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.open()
	id := f.campaign("night", "", func(*record.Campaign) {})
	window := func(failed bool, itemID, name string) {
		t.Helper()
		w := &shard.Window{Header: shard.Header{Schema: 1, Campaign: id, Items: 1, Last: true}}
		it := item.Item{ID: itemID, Campaign: id, Name: name, Task: "hdr", Method: "ddiff", Solver: json.RawMessage(`{}`)}
		if failed {
			w.Failed = []item.Result{{Item: it, Outcome: item.OutcomeFailed, Reason: "no such file"}}
		} else {
			w.Items = []item.Item{it}
		}
		data, err := w.Encode()
		must(t, err)
		must(t, f.store.Put(t.Context(), shard.Key(id, 0), data))
	}
	lists := func(want string) func() bool {
		return func() bool {
			page, err := c.Items(t.Context(), id, api.ItemQuery{Limit: 9})
			got := fmt.Sprint(err)
			for _, it := range page.Items {
				got += fmt.Sprint(" ", it.Name, " ", it.State)
			}
			return got == want
		}
	}
	window(true, boardtest.ID(0), "a")
	until(t, "the row that cannot be read", lists("<nil> a failed"))
	mended := boardtest.ID(1)
	window(false, mended, "a")
	until(t, "the row that can be read", lists("<nil> a pending"))
	if d, err := c.Item(t.Context(), id, mended); err != nil || d.ID != mended {
		t.Errorf("the item that can be read: %+v, %v", d.Item, err)
	}
	must(t, f.store.Delete(t.Context(), shard.Key(id, 0)))
	must(t, f.store.Delete(t.Context(), board.StoredKey(id)))
	must(t, f.board.Delete(t.Context(), record.KeyCampaignPrefix+id))
	until(t, "the deletion", func() bool {
		_, err := c.Items(t.Context(), id, api.ItemQuery{Limit: 9})
		return errors.Is(err, api.ErrNotFound)
	})
	f.campaign("night", "", func(*record.Campaign) {})
	window(false, boardtest.ID(2), "c")
	until(t, "the second campaign", lists("<nil> c pending"))
}

// numberOf reads a number from the environment: make api-test sets large ones.
func numberOf(t *testing.T, name string, otherwise int) int {
	t.Helper()
	if text := os.Getenv(name); text != "" {
		n, err := strconv.Atoi(text)
		must(t, err)
		return n
	}
	return otherwise
}

// stream is an open event stream.
type stream struct {
	lines  *bufio.Scanner
	cancel context.CancelFunc
}

func openStream(t *testing.T, url, lastID string, headers ...string) *stream {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	must(t, err)
	if lastID != "" {
		r.Header.Set("Last-Event-ID", lastID)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	if len(headers) == 0 {
		r.Header.Set("Authorization", "Bearer "+localSecret)
	}
	a, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	must(t, err)
	t.Cleanup(func() { cancel(); _ = a.Body.Close() })
	if a.StatusCode != http.StatusOK || a.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("an event stream: %s %v", a.Status, a.Header)
	}
	lines := bufio.NewScanner(a.Body)
	lines.Buffer(nil, 1<<20)
	return &stream{lines, cancel}
}

// next returns the next event of a kind, and its id.
func (s *stream) next(t *testing.T, kind, part string) (id, data string) {
	t.Helper()
	stop := time.AfterFunc(30*time.Second, s.cancel)
	defer stop.Stop()
	var event string
	for s.lines.Scan() {
		name, value, _ := strings.Cut(s.lines.Text(), ": ")
		switch name {
		case "id":
			id = value
		case "event":
			event = value
		case "data":
			if event == kind && strings.Contains(value, part) {
				return id, value
			}
		}
	}
	t.Fatalf("no event %s with %s: %v", kind, part, s.lines.Err())
	return "", ""
}

// TestEvents: a change reaches the streams of all and of its campaign; a client resumes on another coordinator with what it has missed.
func TestEvents(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	one := f.campaign("one", "", func(*record.Campaign) {})
	two := f.campaign("two", "", func(*record.Campaign) {})
	url := f.serve(f.open(), false)
	all, own := openStream(t, url+"/api/v1/events", ""), openStream(t, url+"/api/v1/campaigns/"+one+"/events", "")
	all.next(t, "ready", "")
	own.next(t, "ready", "")
	_, err := recordtest.Want(t.Context(), f.board, f.store, two, record.WantPause)
	must(t, err)
	last, data := all.next(t, "campaign", two)
	if !strings.Contains(data, `"wanted":"pause"`) {
		t.Errorf("event %s", data)
	}
	_, err = recordtest.Want(t.Context(), f.board, f.store, one, record.WantCancel)
	must(t, err)
	if _, data := own.next(t, "campaign", ""); !strings.Contains(data, one) {
		t.Errorf("the stream of %s has %s", one, data)
	}
	another := f.serve(f.open(), false)
	resumed := openStream(t, another+"/api/v1/events", last)
	if _, data := resumed.next(t, "campaign", ""); !strings.Contains(data, one) || !strings.Contains(data, `"wanted":"cancel"`) {
		t.Errorf("a resumed stream begins with %s", data)
	}
	if a := send(t, http.MethodGet, url+"/api/v1/events", "", "Last-Event-ID: x"); a.status != 422 {
		t.Errorf("a wrong id: %d %s", a.status, a.body)
	}
}

// TestWorkerEvents: the end of a worker is an event of its key, so that no server keeps workers that are gone.
func TestWorkerEvents(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	key := record.KeyWorkerPrefix + queue.Token("gpu.1")
	must(t, f.board.Put(t.Context(), key, []byte(`{"name":"gpu.1"}`)))
	var begun string
	for e, err := range f.open().Watch(t.Context()) {
		must(t, err)
		switch {
		case e.Kind == api.EventReady:
			must(t, f.board.Delete(t.Context(), key))
		case e.Kind == api.EventWorker && len(e.Data) > 0:
			begun = e.Key
		case e.Kind == api.EventWorker:
			if e.Key != begun {
				t.Errorf("%q begins and %q ends", begun, e.Key)
			}
			return
		}
	}
}

// TestManyStreams: one watch of the board serves all streams. DDIFF_API_STREAMS sets their number.
func TestManyStreams(t *testing.T) {
	n := numberOf(t, "DDIFF_API_STREAMS", 100)
	f := newFixture(t)
	id := f.campaign("night", "", func(*record.Campaign) {})
	url := f.serve(f.open(), false)
	streams := make([]*stream, n)
	for i := range streams {
		streams[i] = openStream(t, url+"/api/v1/events", "")
	}
	begin := time.Now()
	_, err := recordtest.Want(t.Context(), f.board, f.store, id, record.WantPause)
	must(t, err)
	for _, s := range streams {
		s.next(t, "campaign", id)
	}
	took := time.Since(begin)
	begin = time.Now()
	if a := send(t, http.MethodGet, url+"/api/v1/campaigns", ""); a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
	t.Logf("streams=%d all_have_event=%v list=%v", n, took.Round(time.Millisecond), time.Since(begin).Round(time.Millisecond))
}

// TestListsFollow: lists that are answered from memory have the writes of this coordinator at once and those of others soon, and fail without the
// board.
func TestListsFollow(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.open()
	url := f.serve(c, false)
	stop := f.lead()
	remote := client(t, url, "")
	phases := func() map[string]record.Wanted {
		t.Helper()
		all, err := remote.Campaigns(t.Context(), false)
		must(t, err)
		found := map[string]record.Wanted{}
		for _, s := range all.Campaigns {
			found[s.Campaign.ID] = s.Campaign.Wanted
		}
		return found
	}
	made, err := remote.Submit(t.Context(), []byte(campaignFile), api.Order{})
	must(t, err)
	if got := phases(); got[made.ID] != record.WantRun {
		t.Errorf("after a submission here: %v", got)
	}
	_, err = remote.Want(t.Context(), made.ID, record.WantPause)
	must(t, err)
	if got := phases(); got[made.ID] != record.WantPause {
		t.Errorf("after a pause here: %v", got)
	}
	_, err = recordtest.Want(t.Context(), f.board, f.store, made.ID, record.WantCancel)
	must(t, err)
	until(t, "the cancellation of another program", func() bool { return phases()[made.ID] == record.WantCancel })
	stop() // it would restore what is removed
	other := f.campaign("other", "", func(*record.Campaign) {})
	until(t, "the campaign of another program", func() bool { return len(phases()) == 2 })
	must(t, f.board.Delete(t.Context(), record.KeyCampaignPrefix+other))
	until(t, "its removal", func() bool { return len(phases()) == 1 })
	f.nc.Close()
	until(t, "an error without the board", func() bool {
		_, err := c.Campaigns(t.Context(), false)
		return err != nil
	})
}
