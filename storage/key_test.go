package storage_test

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"ddiff/storage"
)

func TestCheckKey(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", storage.MaxElementBytes)
	for _, key := range []string{
		"a", "items/0f/result.json", "Bild 1/größe.png", "a..b/...c/.hidden", "a/.tmp", long, long + "/" + long[:254] + "/a",
	} {
		if err := storage.CheckKey(key); err != nil {
			t.Errorf("CheckKey(%q) = %v, want nil", key, err)
		}
	}
	for _, key := range []string{
		long + "/" + long + "/", long + "/" + long + "/a", long + "a", "", "/a", "a/", "a//b", ".", "a/./b", "..", "../a", "a/../b",
		`a\b`, "a\nb", "a\x00b", "a\x7fb", "a\xffb", ".tmp/a", ".tmp", ".ddiff/lock",
	} {
		if err := storage.CheckKey(key); !errors.Is(err, storage.ErrBadKey) {
			t.Errorf("CheckKey(%q) = %v, want ErrBadKey", key, err)
		}
	}
}

func FuzzCheckKey(f *testing.F) {
	for _, seed := range []string{"a", "a/b", "../a", "a//b", "/a", `a\b`, ".tmp/x", "a\xff", "ä/ö", strings.Repeat("k/", 256)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, key string) {
		if err := storage.CheckKey(key); err != nil {
			if !errors.Is(err, storage.ErrBadKey) {
				t.Fatalf("CheckKey(%q) = %v, want ErrBadKey", key, err)
			}
			return
		}
		if !fs.ValidPath(key) || path.Clean(key) != key || !filepath.IsLocal(key) || strings.Contains(key, `\`) {
			t.Fatalf("CheckKey accepts %q", key)
		}
		if len(key) > storage.MaxKeyBytes {
			t.Fatalf("CheckKey accepts %d bytes", len(key))
		}
		if err := storage.CheckPrefix(key); err != nil {
			t.Fatalf("CheckPrefix refuses the valid key %q: %v", key, err)
		}
	})
}
