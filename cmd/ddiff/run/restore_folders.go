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

// checkWritable returns an error for a folder in which no file can be created, or that cannot be created.
func checkWritable(dir string) error {
	for parent := filepath.Dir(dir); parent != dir; parent = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		dir = parent
	}
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
