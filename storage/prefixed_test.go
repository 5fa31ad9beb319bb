package storage_test

import (
	"context"
	"errors"
	"iter"

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

// deep shortens the first element of long keys by the length of the prefix, since the contract uses keys of the
// maximum length.
type deep struct {
	storage.Store
	t *testing.T
}

func (d deep) key(key string) string {
	rest, ok := strings.CutPrefix(key, "deep/")
	if !ok {
		d.t.Errorf("key %q is outside of the prefix", key)
	}
	return rest
}

func (d deep) Get(ctx context.Context, key string) ([]byte, error) {
	return d.Store.Get(ctx, d.key(key))
}

func (d deep) Put(ctx context.Context, key string, data []byte) error {
	return d.Store.Put(ctx, d.key(key), data)
}

func (d deep) Create(ctx context.Context, key string, data []byte) error {
	return d.Store.Create(ctx, d.key(key), data)
}

func (d deep) Delete(ctx context.Context, key string) error {
	return d.Store.Delete(ctx, d.key(key))
}

func (d deep) Stat(ctx context.Context, key string) (storage.Info, error) {
	info, err := d.Store.Stat(ctx, d.key(key))
	info.Key = "deep/" + info.Key
	return info, err
}

func (d deep) List(ctx context.Context, prefix string) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		for info, err := range d.Store.List(ctx, d.key(prefix)) {
			info.Key = "deep/" + info.Key
			if !yield(info, err) {
				return
			}
		}
	}
}

func TestPrefixedContract(t *testing.T) {
	t.Parallel()
	testContract(t, func(t *testing.T) storage.Store {
		return newPrefixed(t, deep{newDir(t, t.TempDir()), t}, "deep")
	})
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

// TestPrefixedListAfterAKey interrupts the listing of a store below Retrying and Prefixed: Prefixed lists the other keys
// only.
func TestPrefixedListAfterAKey(t *testing.T) {
	t.Parallel()
	dir := newDir(t, t.TempDir())
	for _, key := range []string{"o/z", "p/a", "p/b", "p/c", "q/d"} {
		must(t, dir.Put(t.Context(), key, nil))
	}
	retrying, err := storage.NewRetrying(newPrefixed(t, &breakingList{Store: dir}, "p"), storage.RetryConfig{Base: 1})
	must(t, err)
	wantKeys(t, retrying, "", "a", "b", "c")
}

// breakingList is a store whose first listing fails after one key.
type breakingList struct {
	storage.Store
	broken bool
}

func (b *breakingList) List(ctx context.Context, prefix string) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		for info, err := range b.Store.List(ctx, prefix) {
			if !yield(info, err) {
				return
			}
			if !b.broken {
				b.broken = true
				yield(storage.Info{}, storage.ErrUnavailable)
				return
			}
		}
	}
}
