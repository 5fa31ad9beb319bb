package storage_test

import (
	"errors"
	"strings"
	"testing"

	"ddiff/storage"
)

func newPrefixed(t *testing.T, s storage.Store, prefix string) *storage.Prefixed {
	t.Helper()
	p, err := storage.NewPrefixed(s, prefix)
	must(t, err)
	return p
}

// TestPrefixedKeys compares the keys inside and outside of a prefix.
func TestPrefixedKeys(t *testing.T) {
	t.Parallel()
	dir := newDir(t, t.TempDir())
	a, b := newPrefixed(t, dir, "out/a"), newPrefixed(t, dir, "out/a-b/")
	must(t, a.Create(t.Context(), "items/1", []byte("a")))
	must(t, b.Create(t.Context(), "items/1", []byte("b")))
	must(t, b.Create(t.Context(), "items/2", []byte("b")))
	wantKeys(t, a, "", "items/1")
	wantKeys(t, b, "", "items/1", "items/2")
	wantKeys(t, dir, "", "out/a-b/items/1", "out/a-b/items/2", "out/a/items/1")
	info, err := b.Stat(t.Context(), "items/2")
	must(t, err)
	if info.Key != "items/2" {
		t.Errorf("the key is %q", info.Key)
	}
	for _, key := range []string{"../a/items/1", "items/../../a/items/1", "/items/1"} {
		if _, err := b.Get(t.Context(), key); !errors.Is(err, storage.ErrBadKey) {
			t.Errorf("get %s: %v", key, err)
		}
	}
	// The limit on keys includes the prefix.
	if err := a.Put(t.Context(), strings.Repeat("k", 255)+"/"+strings.Repeat("l", 255), nil); !errors.Is(err, storage.ErrBadKey) {
		t.Errorf("key above the limit with the prefix: %v, want ErrBadKey", err)
	}
	for _, prefix := range []string{"", "/", "a//b", "..", ".tmp"} {
		if _, err := storage.NewPrefixed(dir, prefix); !errors.Is(err, storage.ErrBadKey) {
			t.Errorf("prefix %q: %v", prefix, err)
		}
	}
}
