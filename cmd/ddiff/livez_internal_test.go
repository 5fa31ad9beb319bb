package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestLivez(t *testing.T) {
	t.Parallel()
	var hang error
	l := &livez{healthy: func() error { return hang }}
	for _, c := range []struct {
		hang error
		code int
		text string
	}{{nil, 200, "ok\n"}, {errors.New("stage solve took 15m0s"), 503, "stage solve took 15m0s\n"}} {
		hang = c.hang
		w := httptest.NewRecorder()
		l.answer(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/livez", nil))
		if w.Code != c.code || w.Body.String() != c.text {
			t.Errorf("%v: %d %q, want %d %q", c.hang, w.Code, w.Body, c.code, c.text)
		}
	}
}
