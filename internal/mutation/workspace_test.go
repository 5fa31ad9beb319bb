package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestBuildCache: the entries of a mutant leave the build cache, and a cache above the limit is emptied.
func TestBuildCache(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	w := newWorkspace(t.TempDir(), cache, limits{})
	add := func(name string) string {
		t.Helper()
		path := filepath.Join(cache, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, 100), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	kept := []string{add("README"), add("trim.txt"), add("0a/0a1-a"), add("0a/0a1-d"), add("0b/0b1-d/program")}
	w.rememberCache()
	removed := []string{add("0a/0a2-a"), add("0c/0c1-d"), add("0c/0c2-d/program")}
	w.trimCache()
	for _, name := range kept {
		if _, err := os.Stat(name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range removed {
		if _, err := os.Stat(name); err == nil {
			t.Errorf("%s is left", name)
		}
	}
	if err := limitCache(cache, 500); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(kept[0]); err != nil {
		t.Errorf("a cache of the largest size: %v", err)
	}
	for range 2 { // the second time there is no cache
		if err := limitCache(cache, 499); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(cache); err == nil {
			t.Error("a cache above the limit is left")
		}
	}
}
