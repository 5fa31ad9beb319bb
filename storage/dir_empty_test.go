package storage_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"ddiff/storage"
)

// TestDeleteRemovesEmptyDirectories: a deletion removes the directories that are empty then and no others, no link to a directory, also
// while objects are written there.
func TestDeleteRemovesEmptyDirectories(t *testing.T) {
	t.Parallel()
	root, elsewhere := t.TempDir(), t.TempDir()
	d, err := storage.NewDir(root)
	must(t, err)
	step := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	exists := func(path ...string) bool {
		_, err := os.Lstat(filepath.Join(append([]string{root}, path...)...))
		return err == nil
	}
	step(d.Put(t.Context(), "a/b/c/one", nil))
	step(d.Put(t.Context(), "a/b/c/more", nil))
	step(d.Put(t.Context(), "a/two", nil))
	step(d.Delete(t.Context(), "a/b/c/one"))
	if !exists("a", "b", "c", "more") {
		t.Error("another object is gone")
	}
	step(d.Delete(t.Context(), "a/b/c/more"))
	if exists("a", "b") || !exists("a", "two") {
		t.Error("an empty directory is left, or another object is gone")
	}
	step(os.Symlink(elsewhere, filepath.Join(root, "link")))
	step(os.Mkdir(filepath.Join(elsewhere, "below"), 0o755))
	step(d.Delete(t.Context(), "link/below/one"))
	if !exists("link") || !exists("link", "below") {
		t.Error("a link or the empty directory behind it is gone")
	}
	var all sync.WaitGroup
	for _, name := range []string{"p", "q", "r"} {
		all.Go(func() {
			for range 50 {
				step(d.Put(t.Context(), "x/y/"+name, nil))
				step(d.Delete(t.Context(), "x/y/"+name))
				step(d.Create(t.Context(), "x/y/"+name, nil))
				step(d.Delete(t.Context(), "x/y/"+name))
			}
		})
	}
	all.Wait()
	if exists("x") {
		t.Error("an empty directory is left")
	}
}
