package cluster

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestProbes: a process is alive from its start, is ready when its probes say so, and each answer names its reason.
func TestProbes(t *testing.T) {
	t.Parallel()
	p := newProbes("opening the device")
	mux := http.NewServeMux()
	p.handle(mux)
	want := func(path string, code int, text string) {
		t.Helper()
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		if w.Code != code || w.Body.String() != text {
			t.Errorf("%s: %d %q, want %d %q", path, w.Code, w.Body, code, text)
		}
	}
	want("/startupz", 503, "opening the device\n")
	want("/readyz", 503, "opening the device\n")
	want("/livez", 200, "ok\n")
	p.change(passed, func() error { return errors.New("not connected to NATS") }, nil)
	want("/startupz", 200, "ok\n")
	want("/readyz", 503, "not connected to NATS\n")
	want("/livez", 200, "ok\n")
	p.change(nil, passed, func() error { return errors.New("stage solve took 15m0s") })
	want("/startupz", 200, "ok\n")
	want("/readyz", 200, "ok\n")
	want("/livez", 503, "stage solve took 15m0s\n")
}
