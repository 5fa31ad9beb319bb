package dataset_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"ddiff/dataset"
	"ddiff/manifest"
)

// TestSlowServer: a server that sends a byte now and then keeps neither an image nor a list for its total limit, which is
// minutes for an image of unknown size and hours for a list.
func TestSlowServer(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		for tick := time.NewTicker(10 * time.Millisecond); ; {
			select {
			case <-tick.C:
				if _, err := w.Write([]byte("x")); err != nil {
					return
				}
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	s := sources(t, func(c *dataset.Config) {
		c.AllowHTTP, c.Networks = true, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		c.Timeout, c.Attempts, c.CacheBytes = 300*time.Millisecond, 1, -1
	})
	begin := time.Now()
	if _, err := s.Get(t.Context(), server.URL+"/a.png"); !errors.Is(err, dataset.ErrUnavailable) {
		t.Errorf("image: %v", err)
	}
	if _, _, err := rows(t, s, manifest.Dataset{Path: server.URL + "/list.csv"}); !errors.Is(err, dataset.ErrUnavailable) {
		t.Errorf("list: %v", err)
	}
	if took := time.Since(begin); took > 30*time.Second {
		t.Errorf("took %v", took)
	}
}

// TestTimeOfTransfers: the time limit of a transfer grows with the bytes that may be sent, stated or not: those before a range, which
// a server without ranges sends as well, and those of a list whose length is unknown.
func TestTimeOfTransfers(t *testing.T) {
	t.Parallel()
	const size, pieces = 2 << 20, 8
	member := bytes.Repeat([]byte("0123456789abcdef"), size/16)
	list := []byte(strings.Repeat("https://example.org/a.png\n", 8<<10))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data := list
		if strings.HasSuffix(r.URL.Path, ".tar") {
			data = append(make([]byte, size), member...)
		}
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for part := range slices.Chunk(data, len(data)/pieces+1) {
			select {
			case <-tick.C:
			case <-r.Context().Done():
				return
			}
			if _, err := w.Write(part); err != nil {
				return
			}
			w.(http.Flusher).Flush()
		}
	}))
	t.Cleanup(server.Close)
	s := sources(t, func(c *dataset.Config) {
		c.AllowHTTP, c.Networks = true, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		c.Timeout, c.Attempts, c.CacheBytes = 500*time.Millisecond, 1, -1
	})
	address := fmt.Sprintf("tar+%s/a.tar#name=a.npy&offset=%d&size=%d", server.URL, size, size)
	if data, err := s.Get(t.Context(), address); err != nil || !bytes.Equal(data, member) {
		t.Errorf("member: %d bytes, %v", len(data), err)
	}
	if all, _, err := rows(t, s, manifest.Dataset{Path: server.URL + "/list.txt"}); err != nil || len(all) != 8<<10 {
		t.Errorf("list: %d rows, %v", len(all), err)
	}
}
