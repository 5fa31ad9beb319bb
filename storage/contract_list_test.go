package storage_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"ddiff/storage"
)

// testListOrder uses names with different orders as keys and as directory entries.
func testListOrder(t *testing.T, s storage.Store) {
	want := []string{
		"Z", "a b", "a!/x", "a-/0", "a.b", "a/b", "a/b-c", "a/c/d", "a/c/e", "a0", "aa/a", "z/1", "z/10", "z/2", "é",
	}
	slices.Sort(want)
	put := slices.Clone(want)
	slices.Reverse(put)
	for _, key := range put {
		must(t, s.Put(t.Context(), key, []byte(key)))
	}
	wantKeys(t, s, "", want...)
}

func testListPrefix(t *testing.T, s storage.Store) {
	wantKeys(t, s, "")
	all := []string{"items/ab/1", "items/ab/2", "items/abc/1", "items/b", "items2/x", "reports/table.csv"}
	for _, key := range all {
		must(t, s.Put(t.Context(), key, []byte("x")))
	}
	for _, prefix := range []string{
		"", "i", "items", "items/", "items/a", "items/ab", "items/ab/", "items/ab/2", "items/abc", "items/b", "items/b/",
		"items/bb", "items/x/", "items2", "none", "none/", "r", "reports/table.csv", "reports/table.csvx", "reports/table.csv/",
	} {
		want := slices.DeleteFunc(slices.Clone(all), func(key string) bool { return !strings.HasPrefix(key, prefix) })
		wantKeys(t, s, prefix, want...)
	}
}

func testListBreak(t *testing.T, s storage.Store) {
	for _, key := range []string{"a/1", "a/2", "b/1"} {
		must(t, s.Put(t.Context(), key, nil))
	}
	seen := 0
	for _, err := range s.List(t.Context(), "") {
		must(t, err)
		if seen++; seen == 2 {
			break
		}
	}
	if seen != 2 {
		t.Fatalf("saw %d objects, want 2", seen)
	}
}

// testOwnership checks that store and callers share no memory.
func testOwnership(t *testing.T, s storage.Store) {
	data := []byte("put")
	must(t, s.Put(t.Context(), "p", data))
	data[0] = 'X'
	wantBytes(t, s, "p", []byte("put"))
	data = []byte("create")
	must(t, s.Create(t.Context(), "c", data))
	data[0] = 'X'
	wantBytes(t, s, "c", []byte("create"))
	got, err := s.Get(t.Context(), "c")
	must(t, err)
	got[0] = 'X'
	wantBytes(t, s, "c", []byte("create"))
}

func testBadKeys(t *testing.T, s storage.Store) {
	for _, key := range []string{
		"", "/a", "a/", "a//b", ".", "..", "../a", "a/../../b", "a/./b", `a\b`, "a\nb", "a\x00", "a\xff",
		strings.Repeat("k", 513), strings.Repeat("k", 256), ".tmp/a", ".ddiff/lock",
	} {
		for name, err := range everyCall(t.Context(), s, key) {
			if !errors.Is(err, storage.ErrBadKey) {
				t.Errorf("%s(%q) = %v, want ErrBadKey", name, key, err)
			}
		}
	}
	wantKeys(t, s, "")
}

func testBadPrefixes(t *testing.T, s storage.Store) {
	must(t, s.Put(t.Context(), "a", nil))
	for _, prefix := range []string{"/", "../", "a//", `a\`, ".tmp/", ".ddiff/"} {
		if err := listError(t.Context(), s, prefix); !errors.Is(err, storage.ErrBadKey) {
			t.Errorf("List(%q) = %v, want ErrBadKey", prefix, err)
		}
	}
}

func testCancelled(t *testing.T, s storage.Store) {
	must(t, s.Put(t.Context(), "there", []byte("x")))
	ctx := cancelled(t)
	for _, key := range []string{"new", "there"} {
		for name, err := range everyCall(ctx, s, key) {
			wantError(t, name+" of "+key, err, context.Canceled)
		}
	}
	if err := listError(ctx, s, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("List = %v, want context.Canceled", err)
	}
	wantKeys(t, s, "", "there")

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	must(t, s.Put(t.Context(), "then", nil))
	seen, last := 0, error(nil)
	for _, err := range s.List(ctx, "") {
		if last = err; err == nil {
			seen++
			cancel()
		}
	}
	if seen != 1 || !errors.Is(last, context.Canceled) {
		t.Errorf("listing cancelled at its first object yields %d objects, then %v", seen, last)
	}
}

// everyCall calls each method with a key and returns the errors by name.
func everyCall(ctx context.Context, s storage.Store, key string) map[string]error {
	_, get := s.Get(ctx, key)
	_, stat := s.Stat(ctx, key)
	return map[string]error{
		"Get": get, "Stat": stat,
		"Put":    s.Put(ctx, key, []byte("x")),
		"Create": s.Create(ctx, key, []byte("x")),
		"Delete": s.Delete(ctx, key),
	}
}

// listError returns the last error of a listing.
func listError(ctx context.Context, s storage.Store, prefix string) error {
	var last error
	for _, err := range s.List(ctx, prefix) {
		last = err
	}
	return last
}
