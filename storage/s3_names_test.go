package storage_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"ddiff/storage"
	"ddiff/storage/s3test"
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
		replaced := map[string]int{}
		for info, err := range s.List(t.Context(), "") {
			if err != nil {
				t.Fatalf("pages of %d: %v", page, err)
			}
			if strings.ContainsRune(info.Key, utf8.RuneError) {
				replaced[info.Key]++
			} else {
				sound = append(sound, info.Key)
			}
		}
		if got := strings.Join(sound, " "); got != "0/x 1/x 2/x 3/x 4/x 5/x 6/x 7/x 8/x" {
			t.Errorf("pages of %d: %s", page, got)
		}
		if len(replaced) != 10 || len(skipped) != 5 || !skipped["2\nb"] {
			t.Errorf("pages of %d: %d replaced, skipped %v", page, len(replaced), skipped)
		}
		for name, n := range replaced {
			if n != 1 {
				t.Errorf("pages of %d: %q is listed %d times", page, name, n)
			}
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
