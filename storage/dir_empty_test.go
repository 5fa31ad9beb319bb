package storage_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"ddiff/storage"
)

// TestRemoveEmpty removes the directories of deleted objects and no others, also while objects are written there.
func TestRemoveEmpty(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	d, err := storage.NewDir(root)
	must(t, err)
	step := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	step(d.Put(t.Context(), "a/b/c/one", nil))
	step(d.Put(t.Context(), "a/two", nil))
	step(d.RemoveEmpty("a/b/c"))
	if _, err := d.Stat(t.Context(), "a/b/c/one"); err != nil {
		t.Error(err)
	}
	step(d.Delete(t.Context(), "a/b/c/one"))
	step(d.RemoveEmpty("a/b/c"))
	if _, err := os.Stat(filepath.Join(root, "a", "b")); !os.IsNotExist(err) {
		t.Errorf("the directory is left: %v", err)
	}
	if _, err := d.Stat(t.Context(), "a/two"); err != nil {
		t.Error(err)
	}
	if d.RemoveEmpty("../a") == nil {
		t.Error("a directory outside of the store is accepted")
	}
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for range 100 {
				step(d.RemoveEmpty("x/y"))
			}
		})
	}
	for range 50 {
		step(d.Put(t.Context(), "x/y/z", nil))
		step(d.Delete(t.Context(), "x/y/z"))
	}
	all.Wait()
}
