package install

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// serve serves content at the returned address and counts the requests.
func serve(t *testing.T, content []byte) (string, *atomic.Int64) {
	t.Helper()
	return serveFunc(t, func(w http.ResponseWriter, _ *http.Request, _ int64) {
		_, _ = w.Write(content)
	})
}

// serveFunc serves with handle, which receives the number of the request, from 1.
func serveFunc(t *testing.T, handle func(w http.ResponseWriter, r *http.Request, n int64)) (string, *atomic.Int64) {
	t.Helper()
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handle(w, r, requests.Add(1))
	}))
	t.Cleanup(server.Close)
	return server.URL, &requests
}

func TestInstallFromURL(t *testing.T) {
	t.Parallel()
	r, archived := smallRelease(t)
	body := func(w http.ResponseWriter) { _, _ = w.Write(archived) }
	tests := map[string]struct {
		handle   func(w http.ResponseWriter, r *http.Request, n int64)
		requests int64
		wantErr  error
		text     string // empty: it succeeds
	}{
		"plain": {func(w http.ResponseWriter, _ *http.Request, _ int64) { body(w) }, 1, nil, ""},
		"busy at first": {func(w http.ResponseWriter, _ *http.Request, n int64) {
			if n <= 2 {
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			body(w)
		}, 3, nil, ""},
		"breaks off": {func(w http.ResponseWriter, _ *http.Request, _ int64) {
			w.Header().Set("Content-Length", strconv.Itoa(len(archived)))
			_, _ = w.Write(archived[:10])
		}, 1, io.ErrUnexpectedEOF, "after 10 of up to"},
		"redirected": {func(w http.ResponseWriter, r *http.Request, _ int64) {
			if r.URL.Path != "/there" {
				http.Redirect(w, r, "/there", http.StatusFound)
				return
			}
			body(w)
		}, 2, nil, ""},
		"not there": {func(w http.ResponseWriter, r *http.Request, _ int64) { http.NotFound(w, r) }, 1, nil, "404"},
		"wrong bytes": {func(w http.ResponseWriter, _ *http.Request, _ int64) {
			_, _ = w.Write([]byte(strings.Repeat("x", len(archived))))
		}, 1, ErrChecksum, "sha512"},
		"wrong length": {func(w http.ResponseWriter, _ *http.Request, _ int64) { _, _ = w.Write([]byte("login page")) }, 1, ErrChecksum, "10 bytes"},
		"no end in sight": {func(w http.ResponseWriter, r *http.Request, _ int64) {
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		}, 1, ErrChecksum, "larger"},
		"short without length": {func(w http.ResponseWriter, _ *http.Request, _ int64) {
			_, _ = w.Write(archived[:len(archived)-1])
			w.(http.Flusher).Flush()
		}, 1, ErrChecksum, "want"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, requests := serveFunc(t, test.handle)
			cache := t.TempDir()
			lib, err := r.install(t.Context(), Options{From: server, CacheDir: cache})
			if requests.Load() != test.requests {
				t.Errorf("%d requests, want %d", requests.Load(), test.requests)
			}
			if test.text == "" {
				if err != nil || string(read(t, lib.Path)) != libraryText {
					t.Errorf("got %+v, %v", lib, err)
				}
				wantOnly(t, cache, "9.9.9-cpu")
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.text) || test.wantErr != nil && !errors.Is(err, test.wantErr) {
				t.Errorf("got %v, want %v containing %q", err, test.wantErr, test.text)
			}
			wantOnly(t, cache)
		})
	}
}

func TestInstallInvalidFrom(t *testing.T) {
	t.Parallel()
	r, archived := smallRelease(t)
	dir := t.TempDir()
	wrong := filepath.Join(dir, "wrong.tgz")
	write(t, wrong, append([]byte{archived[0] ^ 1}, archived[1:]...))
	short := filepath.Join(dir, "short.tgz")
	write(t, short, archived[1:])
	server, _ := serveFunc(t, func(w http.ResponseWriter, r *http.Request, _ int64) { http.NotFound(w, r) })
	tests := map[string]struct{ from, text string }{
		"secret is hidden": {strings.Replace(server, "http://", "http://user:hunter2@", 1), "user:xxxxx@"},
		"missing file":     {filepath.Join(dir, "gone.tgz"), "gone.tgz"},
		"directory":        {dir, "not a file"},
		"wrong file":       {wrong, "sha512"},
		"short file":       {short, "bytes, want"},
		"other scheme":     {"ftp://example.invalid/small.tgz", "--from"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cache := t.TempDir()
			_, err := r.install(t.Context(), Options{From: test.from, CacheDir: cache})
			if err == nil || !strings.Contains(err.Error(), test.text) {
				t.Errorf("got %v, want an error containing %q", err, test.text)
			}
			wantOnly(t, cache)
		})
	}
}
