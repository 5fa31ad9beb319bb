package cluster_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"ddiff/api"
	"ddiff/coordinator/serve"
	"ddiff/manifest"
)

// TestClientEqualsBoard: over HTTP the verbs have the same answers and errors as over the queue.
func TestClientEqualsBoard(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.open()
	remote := client(t, f.serve(c, false), "")
	done := f.campaign("done", "", func(c *manifest.Campaign) { c.Phase = manifest.PhaseFinished })
	same := func(name string, local, http error) {
		t.Helper()
		if local == nil || http == nil || serve.Problem(local).Detail != http.Error() || !errors.Is(serve.Problem(local).Unwrap(), wantCondition(http)) {
			t.Errorf("%s: %v, and over HTTP %v", name, local, http)
		}
	}
	_, a := c.Want(t.Context(), done, manifest.WantPause)
	_, b := remote.Want(t.Context(), done, manifest.WantPause)
	same("pause a finished campaign", a, b)
	_, a = c.Retry(t.Context(), done, "", api.Retry{Items: []string{"aa"}})
	_, b = remote.Retry(t.Context(), done, "", api.Retry{Items: []string{"aa"}})
	same("retry an unknown item", a, b)
	_, a = c.Retry(t.Context(), done, "", api.Retry{})
	_, b = remote.Retry(t.Context(), done, "", api.Retry{})
	same("retry nothing", a, b)
	_, a = c.Submit(t.Context(), []byte("tasks: [unknown]\ndataset: {path: /x}\nname: x\n"), api.Order{})
	_, b = remote.Submit(t.Context(), []byte("tasks: [unknown]\ndataset: {path: /x}\nname: x\n"), api.Order{})
	same("submit an unknown task", a, b)

	spec, err := manifest.Parse("night", []byte("dataset: {path: photos, size: 128}\ntasks: [{name: super_resolution, params: {factor: 4}, sigma: 0.02}]\nmethods: [ddiff, dps]\nruns: 2\n"), "/data")
	must(t, err)
	made, err := remote.SubmitSpec(t.Context(), spec, api.Order{Priority: manifest.PriorityHigh, Weight: 3, Canary: 4})
	if err != nil || made.ID != spec.ID() {
		t.Fatalf("%+v, %v; want the id %s", made, err, spec.ID())
	}
	s, err := remote.Campaign(t.Context(), made.ID)
	if r := s.Campaign; err != nil || r.Priority != manifest.PriorityHigh || r.Weight != 3 || r.Canary != 4 || r.Spec.Dataset.Path != "/data/photos" {
		t.Errorf("%+v, %v", r, err)
	}
	checked, err := remote.Check(t.Context(), []byte("tasks: [unknown]\ndataset: {path: /x}\nsigma: -1\n"), api.Order{})
	if err != nil || len(checked.Problems) == 0 || checked.Problems[0].Field == "" || checked.Problems[0].Line == 0 {
		t.Errorf("%+v, %v", checked, err)
	}
}

// TestETag: an unchanged answer is not sent again.
func TestETag(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	url := f.serve(f.open(), false) + "/api/v1/campaigns"
	first := send(t, "GET", url, "")
	if a := send(t, "GET", url, "", "If-None-Match: "+first.header.Get("ETag")); a.status != 304 || a.body != "" {
		t.Errorf("%d %s", a.status, a.body)
	}
	f.campaign("night", "", func(*manifest.Campaign) {})
	until(t, "an answer after a change", func() bool { return send(t, "GET", url, "", "If-None-Match: "+first.header.Get("ETag")).status == 200 })
}

// TestNotifyOnce: a request whose answer may be lost is not repeated if it would send another notification.
func TestNotifyOnce(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		w.WriteHeader(http.StatusBadGateway)
	}))
	t.Cleanup(server.Close)
	if _, err := client(t, server.URL, "").Notify(t.Context(), "night"); err == nil || calls.Load() != 1 {
		t.Errorf("%d requests, %v", calls.Load(), err)
	}
}
