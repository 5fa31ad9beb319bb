package cluster_test

import (
	"bufio"
	"context"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"ddiff/api"
	"ddiff/coordinator/board"
	"ddiff/manifest"
	"ddiff/queue"
)

// manyItems and manyStreams are small unless the environment says otherwise: make api-test does.
func manyItems(t *testing.T) int { return numberOf(t, "DDIFF_API_ITEMS", 10_000) }

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
	one := f.campaign("one", "", func(*manifest.Campaign) {})
	two := f.campaign("two", "", func(*manifest.Campaign) {})
	url := f.serve(f.open(), false)
	all, own := openStream(t, url+"/api/v1/events", ""), openStream(t, url+"/api/v1/campaigns/"+one+"/events", "")
	all.next(t, "ready", "")
	own.next(t, "ready", "")
	_, err := board.Want(t.Context(), f.board, two, manifest.WantPause)
	must(t, err)
	last, data := all.next(t, "campaign", two)
	if !strings.Contains(data, `"wanted":"pause"`) {
		t.Errorf("event %s", data)
	}
	_, err = board.Want(t.Context(), f.board, one, manifest.WantCancel)
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
	key := manifest.KeyWorkerPrefix + queue.Token("gpu.1")
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
	id := f.campaign("night", "", func(*manifest.Campaign) {})
	url := f.serve(f.open(), false)
	streams := make([]*stream, n)
	for i := range streams {
		streams[i] = openStream(t, url+"/api/v1/events", "")
	}
	begin := time.Now()
	_, err := board.Want(t.Context(), f.board, id, manifest.WantPause)
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
	remote := client(t, url, "")
	openStream(t, url+"/api/v1/events", "").next(t, "ready", "") // the memory is complete
	phases := func() map[string]manifest.Wanted {
		t.Helper()
		all, err := remote.Campaigns(t.Context(), false)
		must(t, err)
		found := map[string]manifest.Wanted{}
		for _, s := range all.Campaigns {
			found[s.Campaign.ID] = s.Campaign.Wanted
		}
		return found
	}
	made, err := remote.Submit(t.Context(), []byte(campaignFile), api.Order{})
	must(t, err)
	if got := phases(); got[made.ID] != manifest.WantRun {
		t.Errorf("after a submission here: %v", got)
	}
	_, err = remote.Want(t.Context(), made.ID, manifest.WantPause)
	must(t, err)
	if got := phases(); got[made.ID] != manifest.WantPause {
		t.Errorf("after a pause here: %v", got)
	}
	_, err = board.Want(t.Context(), f.board, made.ID, manifest.WantCancel)
	must(t, err)
	until(t, "the cancellation of another program", func() bool { return phases()[made.ID] == manifest.WantCancel })
	other := f.campaign("other", "", func(*manifest.Campaign) {})
	until(t, "the campaign of another program", func() bool { return len(phases()) == 2 })
	must(t, f.board.Delete(t.Context(), manifest.KeyCampaignPrefix+other))
	until(t, "its removal", func() bool { return len(phases()) == 1 })
	f.nc.Close()
	until(t, "an error without the board", func() bool {
		_, err := c.Campaigns(t.Context(), false)
		return err != nil
	})
}
