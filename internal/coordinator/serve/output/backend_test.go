package output

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"testing"
	"time"

	"ddiff/api"
	"ddiff/internal/record"
	"ddiff/internal/report/reporttest"
	"ddiff/internal/report/result"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// put stores a result.
func put(t *testing.T, store *reporttest.Memory, r item.Result) item.Result {
	t.Helper()
	data, err := json.Marshal(r)
	reporttest.Must(t, err)
	store.Files[item.Key(r.Item.ID, item.FileResult)] = data
	return r
}

func done(t *testing.T, name string, psnr float64) item.Result {
	t.Helper()
	r := reporttest.Result(t, "hdr", "ddiff", name, 0, reporttest.Scored(psnr, 18, 0.5, 0.01))
	r.Finished = time.Now().UTC()
	return r
}

func TestBackend(t *testing.T) {
	t.Parallel()
	store := reporttest.NewMemory()
	a, b := put(t, store, done(t, "a.png", 20)), put(t, store, done(t, "b.png", 25))
	dead := done(t, "c.png", 0)
	dead.Outcome, dead.Reason, dead.Attempt = item.OutcomeDead, "worker ended twice", 3
	line, err := json.Marshal(dead)
	reporttest.Must(t, err)
	store.Files[result.FailuresFolder+"campaign/0000.jsonl"] = append(line, '\n')
	outputs := []result.Output{{Address: "out/My Photos", Store: store}, {Address: "s3://b/my-photos?region=x", Store: store}}
	backend, err := New(t.Context(), outputs)
	reporttest.Must(t, err)

	list, err := backend.Campaigns(t.Context(), false)
	reporttest.Must(t, err)
	if len(list.Campaigns) != 2 || list.Campaigns[0].Campaign.ID != "my-photos" || list.Campaigns[1].Campaign.ID != "my-photos-2" {
		t.Fatalf("campaigns %+v", list.Campaigns)
	}
	if got, want := list.Campaigns[0].Status.Counts, (record.Counts{Items: 3, Done: 2, Dead: 1}); got != want {
		t.Errorf("counts %+v, want %+v", got, want)
	}
	page, err := backend.Items(t.Context(), "my-photos", api.ItemQuery{Sort: "-psnr", Limit: 2})
	reporttest.Must(t, err)
	if page.Total != 3 || len(page.Items) != 2 || page.Items[0].ID != b.Item.ID || page.Items[1].ID != a.Item.ID || page.Next == "" {
		t.Errorf("items %+v", page)
	}
	detail, err := backend.Item(t.Context(), "my-photos", a.Item.ID)
	reporttest.Must(t, err)
	if detail.Settings.Name != "a.png" || len(detail.Result) == 0 || len(detail.Files) != 1 || detail.Files[0].Name != item.FileResult {
		t.Errorf("item %+v", detail)
	}
	logs, err := backend.Logs(t.Context(), "my-photos", dead.Item.ID)
	reporttest.Must(t, err)
	if len(logs.Attempts) != 1 || logs.Attempts[0].Attempt != 3 || logs.Attempts[0].Reason != dead.Reason {
		t.Errorf("logs %+v", logs)
	}
	if _, err := backend.Campaign(t.Context(), "other"); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("an unknown output is %v", err)
	}
}

// TestWatchFollowsARunElsewhere: a result that another process stores is an event.
func TestWatchFollowsARunElsewhere(t *testing.T) {
	t.Parallel()
	store := reporttest.NewMemory()
	put(t, store, done(t, "a.png", 20))
	backend, err := New(t.Context(), []result.Output{{Address: "out", Store: store}})
	reporttest.Must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	next, stop := iter.Pull2(backend.Watch(ctx))
	defer stop()
	for {
		e, err, _ := next()
		reporttest.Must(t, err)
		if e.Kind == api.EventReady {
			break
		}
	}
	put(t, store, done(t, "b.png", 21))
	for {
		e, err, open := next()
		reporttest.Must(t, err)
		if !open {
			t.Fatal("the watch ended without the second item")
		}
		if e.Kind != api.EventStatus {
			continue
		}
		var s record.Status
		reporttest.Must(t, json.Unmarshal(e.Data, &s))
		if s.Counts.Done == 2 {
			return
		}
	}
}

func TestLive(t *testing.T) {
	t.Parallel()
	spec := &manifest.Spec{Name: "photographs"}
	live := NewLive(spec, result.Output{Address: "out", Store: reporttest.NewMemory()})
	before := done(t, "old.png", 20)
	before.Finished = before.Finished.Add(-time.Hour)
	live.Entered(3, true)
	live.Settled(before)
	live.Settled(done(t, "new.png", 21))
	s, err := live.Campaign(t.Context(), spec.ID(""))
	reporttest.Must(t, err)
	if got, want := s.Status.Counts, (record.Counts{Items: 3, Done: 2, Pending: 1}); got != want || s.Status.Rate != 1 || s.Status.Left != 1 || !s.Status.Complete {
		t.Errorf("status %+v, want counts %+v and one item in the first second", s.Status, want)
	}
	live.Ended(errors.New("the store is full"))
	s, err = live.Campaign(t.Context(), spec.ID(""))
	reporttest.Must(t, err)
	if s.Campaign.Phase != record.PhaseCancelled || s.Campaign.Reason != "the store is full" {
		t.Errorf("an ended run is %+v", s.Campaign)
	}
}
