package manifest

import (
	"context"
	"fmt"
	"io"
	"os"
)

// MaxFileBytes is the largest file of a dataset that is read.
const MaxFileBytes = 1 << 30

// Files reads the files of datasets on this machine.
type Files struct{}

// Get returns the contents of a regular file.
func (Files) Get(ctx context.Context, path string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // nothing was written
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	if info.Size() > MaxFileBytes {
		return nil, fmt.Errorf("%s has %d bytes, more than the limit of %d", path, info.Size(), MaxFileBytes)
	}
	return io.ReadAll(f)
}
