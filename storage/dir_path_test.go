package storage_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ddiff/storage"
)

// TestOpenImpossibleDirectory opens paths that cannot be a directory.
func TestOpenImpossibleDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, loop, dangling := filepath.Join(dir, "file"), filepath.Join(dir, "loop"), filepath.Join(dir, "dangling")
	must(t, os.WriteFile(file, nil, 0o644))
	must(t, os.Symlink(loop, loop))
	must(t, os.Symlink(filepath.Join(dir, "nowhere"), dangling))
	long := filepath.Join(dir, strings.Repeat("x", 5000))
	for _, path := range []string{loop, filepath.Join(loop, "x"), long, dangling} {
		_, err := storage.Open(t.Context(), path, storage.Options{})
		wantError(t, "open "+filepath.Base(path), err, storage.ErrAddress)
	}
	for _, path := range []string{loop, filepath.Join(loop, "x"), long, filepath.Join(file, "x")} {
		_, err := storage.Open(t.Context(), path, storage.Options{ReadOnly: true})
		wantError(t, "open for reading", err, storage.ErrAddress)
	}
	_, err := storage.Open(t.Context(), filepath.Join(file, "x"), storage.Options{})
	wantError(t, "create below a file", err, storage.ErrConflict)
}
