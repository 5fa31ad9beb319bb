package dataset_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
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
