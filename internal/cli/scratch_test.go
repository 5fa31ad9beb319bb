package cli_test

import (
	"os"
	"path/filepath"
	"testing"

	"ddiff/internal/cli"
	"ddiff/internal/regular"
)

// TestDamagedScratchLock: a run with a damaged lock in its scratch folder makes the folder anew, whatever has the name of the lock; no folder
// stays, and what a link names is not touched.
func TestDamagedScratchLock(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	output, victim := t.TempDir(), filepath.Join(t.TempDir(), "precious")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(victim, []byte("text"), 0o644))
	make := func() (folder string, remove func() error) {
		t.Helper()
		dir, remove, err := cli.MakeScratch(output)
		must(err)
		return filepath.Dir(dir), remove
	}
	first, remove := make()
	must(remove())
	for name, damage := range map[string]func(lock string) error{
		"text":   func(lock string) error { return os.WriteFile(lock, []byte("\x00\x00"), 0o644) },
		"folder": func(lock string) error { return os.Mkdir(lock, 0o755) },
		"link":   func(lock string) error { return os.Symlink(victim, lock) },
		"name":   func(lock string) error { return os.Link(victim, lock) },
	} {
		must(os.MkdirAll(filepath.Join(first, ".ddiff"), 0o700))
		must(os.Chmod(first, 0o700))
		if !regular.IsPrivate(first) {
			t.Fatalf("%s is not private", first)
		}
		must(damage(filepath.Join(first, ".ddiff", "lock")))
		folder, remove := make()
		if folder != first {
			t.Errorf("%s: the folder is %s, want %s", name, folder, first)
		}
		beside, removeBeside := make() // a second process has another folder
		if beside == folder {
			t.Errorf("%s: two processes have the folder %s", name, folder)
		}
		must(removeBeside())
		must(remove())
		if left := cli.ScratchFolders(); len(left) > 0 && filepath.Dir(left[0]) == filepath.Dir(first) {
			t.Errorf("%s: %q stay", name, left)
		}
	}
	if text, err := os.ReadFile(victim); err != nil || string(text) != "text" {
		t.Errorf("the file behind a link has %q, %v", text, err)
	}
}
