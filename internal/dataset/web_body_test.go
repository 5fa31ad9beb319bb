package dataset_test

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"ddiff/internal/dataset"
	"ddiff/manifest"
)

// TestBodies: answers with and without a length arrive complete, and are refused above the limit or by their beginning.
func TestBodies(t *testing.T) {
	t.Parallel()
	const block, limit = 1 << 20, 3 << 20
	data := bytes.Repeat([]byte("0123456789abcde"), limit)
	errBeginning := errors.New("other format")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		size, err := strconv.Atoi(r.URL.Query().Get("size"))
		if err != nil {
			t.Error(err)
		}
		if strings.HasPrefix(r.URL.Path, "/stated") {
			w.Header().Set("Content-Length", strconv.Itoa(size))
		} else if size < block {
			w.(http.Flusher).Flush() // otherwise the server computes the length
		}
		_, _ = w.Write(data[:min(size, len(data))]) // fails if the client refuses it
	}))
	t.Cleanup(server.Close)
	refuse := false
	s := sources(t, func(c *dataset.Config) {
		c.AllowHTTP, c.Networks = true, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		c.MaxBytes, c.CacheDir = limit, t.TempDir()
		c.CheckImage = func(beginning []byte, _ int64) error {
			if !bytes.HasPrefix(data, beginning) || len(beginning) > 32 {
				t.Errorf("beginning %q", beginning)
			}
			if refuse {
				return errBeginning
			}
			return nil
		}
	})
	for _, kind := range []string{"/stated", "/chunked"} {
		for _, size := range []int{0, 1, 31, 32, 33, block - 1, block, block + 1, limit - 1, limit} {
			got, err := s.Get(t.Context(), server.URL+kind+".png?size="+strconv.Itoa(size))
			if err != nil || !bytes.Equal(got, data[:size]) {
				t.Errorf("%s %d: %d bytes, error %v", kind, size, len(got), err)
			}
		}
		if _, err := s.Get(t.Context(), server.URL+kind+".png?size="+strconv.Itoa(limit+1)); !errors.Is(err, dataset.ErrTooLarge) {
			t.Errorf("%s above the limit: %v", kind, err)
		}
	}
	refuse = true
	if _, err := s.Get(t.Context(), server.URL+"/chunked.png?size=3000000"); !errors.Is(err, errBeginning) {
		t.Errorf("refused beginning: %v", err)
	}
	if _, err := s.Get(t.Context(), server.URL+"/chunked.npy?size=3000000"); err != nil {
		t.Errorf("other file: %v", err)
	}
	s = sources(t, func(c *dataset.Config) {
		c.AllowHTTP, c.Networks = true, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	for path, want := range map[string]error{"/chunked?size=": dataset.ErrTooLarge, "/stated?size=": nil} {
		if _, err := s.Get(t.Context(), server.URL+path+strconv.Itoa(16<<20+1)); !errors.Is(err, want) {
			t.Errorf("%s of 16 MiB and a byte: %v, want %v", path, err, want)
		}
	}
	// This server does not support ranges.
	if _, _, err := rows(t, s, manifest.Dataset{Path: server.URL + "/stated.tar?size=" + strconv.Itoa(64<<20+1)}); !errors.Is(err, dataset.ErrTooLarge) {
		t.Errorf("a shard above 64 MiB: %v", err)
	}
}
