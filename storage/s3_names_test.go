package storage_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/s3test"
	"ddiff/storage"
)

// TestUnlistableNames: names that the answers of a server cannot represent, or that are no keys, hide no other object, on any
// border of a page.
func TestUnlistableNames(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t, s3test.Options{})
	bucket := server.Bucket(t)
	put := func(name string) {
		path := filepath.Join(server.Root, bucket, filepath.FromSlash(name))
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte("x"), 0o600))
	}
	for n := range 9 {
		put(fmt.Sprintf("out/%d/x", n))
		if n%2 == 0 {
			put(fmt.Sprintf("out/%d\x1b[2J", n))
			put(fmt.Sprintf("out/%d\x01", n))
			put(fmt.Sprintf("out/%d\nb", n))
		}
	}
	for n := range 3 {
		put(fmt.Sprintf("stuck\x01%d", n))
	}
	for _, page := range []int{3, 4, 5, 7, 1000} {
		skipped := map[string]bool{}
		config := server.Config(bucket)
		config.Prefix, config.Skipped = "out", func(name string) { skipped[name] = true }
		s, err := storage.OpenS3(t.Context(), config)
		must(t, err)
		t.Cleanup(s.Close)
		storage.SetPageSize(s, page)
		var sound []string
		for info, err := range s.List(t.Context(), "") {
			if err != nil {
				t.Fatalf("pages of %d: %v", page, err)
			}
			sound = append(sound, info.Key)
		}
		if got := strings.Join(sound, " "); got != "0/x 1/x 2/x 3/x 4/x 5/x 6/x 7/x 8/x" {
			t.Errorf("pages of %d: %s", page, got)
		}
		if len(skipped) != 15 || !skipped["2\nb"] {
			t.Errorf("pages of %d: skipped %q", page, slices.Collect(maps.Keys(skipped)))
		}
	}
	// A page without any other name ends the listing instead of repeating it.
	config := server.Config(bucket)
	s, err := storage.OpenS3(t.Context(), config)
	must(t, err)
	t.Cleanup(s.Close)
	storage.SetPageSize(s, 2)
	var last error
	for _, err := range s.List(t.Context(), "stuck") {
		last = err
	}
	if last == nil || !strings.Contains(last.Error(), "replaced characters") {
		t.Errorf("a page of such names only: %v", last)
	}
}
