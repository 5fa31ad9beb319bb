package manifest

import (
	"context"
	"fmt"
	"io"
	"os"
)

// MaxFileBytes is the size limit of a dataset's file, in bytes.
const MaxFileBytes = 1 << 30

// Files reads local files of datasets.
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
	defer f.Close() // opened for reading
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
