package dataset_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"ddiff/internal/dataset"
)

// TestChunkedRange: a server that sends a range in chunks states its length in Content-Range.
func TestChunkedRange(t *testing.T) {
	t.Parallel()
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<20+1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var from, to int
		if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &from, &to); err != nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		to = min(to, len(data)-1)
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to, len(data)))
		w.WriteHeader(http.StatusPartialContent)
		w.(http.Flusher).Flush()
		_, _ = w.Write(data[from : to+1]) // fails if the client refuses it
	}))
	t.Cleanup(server.Close)
	s := sources(t, func(c *dataset.Config) {
		c.AllowHTTP, c.Networks = true, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	got, err := s.Get(t.Context(), fmt.Sprintf("tar+%s/x.tar#name=a.npy&offset=0&size=%d", server.URL, len(data)))
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// TestLargeWithoutRanges: the error of a shard that is too large for a server without ranges has a remedy.
func TestLargeWithoutRanges(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "300000000")
	}))
	t.Cleanup(server.Close)
	s := sources(t, func(c *dataset.Config) {
		c.AllowHTTP, c.Networks = true, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	_, err := s.Get(t.Context(), "tar+"+server.URL+"/x.tar#name=a.npy&offset=0&size=16")
	if !errors.Is(err, dataset.ErrTooLarge) || !strings.Contains(err.Error(), "does not support ranges") || !strings.Contains(err.Error(), "another server") {
		t.Errorf("%v", err)
	}
}
