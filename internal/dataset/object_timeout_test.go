package dataset_test

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"ddiff/internal/dataset"
)

// TestObjectTimeout: all attempts at one file together have a time limit, on the web and in a bucket. The end of the caller's
// context is not a failure of the server.
func TestObjectTimeout(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && r.URL.Path != "/photos/" { // the check of the bucket succeeds
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(server.Close)
	const limit = 300 * time.Millisecond
	s := sources(t, func(c *dataset.Config) {
		c.AllowHTTP, c.Networks = true, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		c.Attempts, c.ObjectTimeout, c.CacheBytes = math.MaxInt32, limit, -1
		c.S3.AccessKey, c.S3.SecretKey, c.S3.Region = "key", "secret", "us-east-1"
	})
	for _, path := range []string{server.URL + "/a.png", "s3://photos/a.png?endpoint=" + server.URL} {
		begin := time.Now()
		_, err := s.Get(t.Context(), path)
		if !errors.Is(err, dataset.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", path, err)
		}
		if took := time.Since(begin); took < limit {
			t.Errorf("%s: took %v, less than %v", path, took, limit)
		}
		ctx, cancel := context.WithTimeout(t.Context(), limit/3)
		_, err = s.Get(ctx, path)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: caller's limit: %v", path, err)
		}
	}
}
