package entry

import (
	"errors"
	"fmt"
	"os"
)

// TempFile opens a temporary file without a name: closing it, or the end of the process, frees its space. The error wraps
// ErrTemporary.
func TempFile() (*os.File, error) {
	f, err := os.CreateTemp("", "ddiff-report-")
	if err != nil {
		return nil, TemporaryError(err)
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(TemporaryError(err), f.Close())
	}
	return f, nil
}

// TemporaryError marks an error of a temporary file.
func TemporaryError(err error) error {
	return fmt.Errorf("%w %s: %w; set TMPDIR to a directory with free space", ErrTemporary, os.TempDir(), err)
}
