package dataset_test

import (
	"bytes"
	"fmt"
	"net/http"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"ddiff/internal/dataset"
	"ddiff/storage"
)

// Concurrent readers of a bucket and a web server with one cache get the right bytes, even after an object was replaced
// and while the cache is too small.
func TestConcurrentReaders(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	const n = 12
	objects := map[string][]byte{}
	for i := range n {
		objects[fmt.Sprintf("photos/%02d.png", i)] = picture(t, i)
		write(t, folder, fmt.Sprintf("%02d.png", i), picture(t, 100+i))
	}
	name, server, allow := bucket(t, objects)
	base, allowWeb := webServer(t, folder, nil)
	for _, size := range []int64{0, 2000, -1} {
		s := sources(t, func(c *dataset.Config) { allow(c); allowWeb(c); c.CacheBytes = size })
		group, ctx := errgroup.WithContext(t.Context())
		for range 3 {
			for i := range n {
				group.Go(func() error {
					for address, want := range map[string][]byte{
						fmt.Sprintf("s3://%s/photos/%02d.png", name, i): picture(t, i),
						fmt.Sprintf("%s/%02d.png", base, i):             picture(t, 100+i),
					} {
						if got, err := s.Get(ctx, address); err != nil || !bytes.Equal(got, want) {
							return fmt.Errorf("%s: wrong bytes, or error %w", address, err)
						}
					}
					return nil
				})
			}
		}
		if err := group.Wait(); err != nil {
			t.Errorf("cache of %d bytes: %v", size, err)
		}
		store, err := storage.OpenS3(t.Context(), server.Config(name))
		must(t, err)
		must(t, store.Put(t.Context(), "photos/00.png", picture(t, 50)))
		if got, err := s.Get(t.Context(), "s3://"+name+"/photos/00.png"); err != nil || !bytes.Equal(got, picture(t, 50)) {
			t.Errorf("cache of %d bytes: stale bytes, or error %v", size, err)
		}
		must(t, store.Put(t.Context(), "photos/00.png", picture(t, 0)))
		store.Close()
	}
}

// The wait for a server that requests a delay of a day is bounded.
func TestRetryAfterIsBounded(t *testing.T) {
	t.Parallel()
	base, allow := webServer(t, t.TempDir(), func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Retry-After", "86400")
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	})
	begun := time.Now()
	_, err := sources(t, func(c *dataset.Config) { allow(c); c.CacheBytes = -1 }).Get(t.Context(), base+"/a.png")
	if took := time.Since(begun); err == nil || took > time.Minute {
		t.Errorf("%v after %v", err, took)
	}
}
