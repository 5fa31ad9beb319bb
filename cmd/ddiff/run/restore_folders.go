package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"ddiff/internal/cli"
	"ddiff/storage"
)

// newFolder creates a folder with its parents. remove removes those that it has created and that are still empty, also after an error.
func newFolder(dir string) (remove func(), err error) {
	full, err := filepath.Abs(dir)
	if err != nil {
		return func() {}, err
	}
	var created []string // the deepest first
	for at := full; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(at); !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			break
		}
		created = append(created, at)
	}
	remove = func() {
		for _, d := range created {
			if os.Remove(d) != nil {
				return
			}
		}
	}
	return remove, os.MkdirAll(full, 0o755)
}

// checkWritable returns an error for a folder in which no file can be created.
func checkWritable(dir string) error {
	f, err := os.CreateTemp(dir, ".ddiff-*.tmp")
	if err != nil {
		return fmt.Errorf("%w: %w", cli.ErrRestoredFile, err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// discardOutput removes the folder of results that a refused restoration has created. It leaves a folder with other files than the lock.
func discardOutput(dir string) {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) == 1 && storage.HasLock(dir) {
		os.RemoveAll(dir) //nolint:errcheck // an empty folder, which ddiff gc also removes
	}
}
