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
	cases := []struct {
		name, key string
		ok        bool
	}{
		{"one element", "a", true},
		{"nested", "items/0f/result.json", true},
		{"spaces and unicode", "Bild 1/größe.png", true},
		{"dots inside", "a..b/...c/.hidden", true},
		{"reserved name deeper", "a/.tmp", true},
		{"longest element", long, true},
		{"longest key", long + "/" + long + "/", false},
		{"512 bytes", long + "/" + long + "/a", false},
		{"exactly 512", long + "/" + long[:254] + "/a", true},
		{"long element", long + "a", false},
		{"empty", "", false},
		{"leading slash", "/a", false},
		{"trailing slash", "a/", false},
		{"double slash", "a//b", false},
		{"dot", ".", false},
		{"dot inside", "a/./b", false},
		{"dot dot", "..", false},
		{"dot dot first", "../a", false},
		{"dot dot inside", "a/../b", false},
		{"backslash", `a\b`, false},
		{"newline", "a\nb", false},
		{"nul", "a\x00b", false},
		{"delete", "a\x7fb", false},
		{"not utf-8", "a\xffb", false},
		{"temp", ".tmp/a", false},
		{"temp itself", ".tmp", false},
		{"state", ".ddiff/lock", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := storage.CheckKey(c.key)
			if c.ok && err != nil {
				t.Fatalf("CheckKey(%q) = %v, want nil", c.key, err)
			}
			if !c.ok && !errors.Is(err, storage.ErrBadKey) {
				t.Fatalf("CheckKey(%q) = %v, want ErrBadKey", c.key, err)
			}
		})
	}
}

func TestCheckPrefix(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"", "a", "a/", "a/b", "a/.", strings.Repeat("a", 255), ".t"} {
		if err := storage.CheckPrefix(prefix); err != nil {
			t.Errorf("CheckPrefix(%q) = %v, want nil", prefix, err)
		}
	}
	for _, prefix := range []string{"/", "../", "a//", "a/../", ".tmp/", "a\\", "a\n"} {
		if err := storage.CheckPrefix(prefix); !errors.Is(err, storage.ErrBadKey) {
			t.Errorf("CheckPrefix(%q) = %v, want ErrBadKey", prefix, err)
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
