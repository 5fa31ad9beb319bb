package manifest

import (
	"context"

	"ddiff/internal/regular"
)

// MaxFileBytes is the size limit of a dataset's file, in bytes.
const MaxFileBytes = 1 << 30

// Files reads local files of datasets.
type Files struct{}

// Get returns the contents of a regular file of at most MaxFileBytes. Errors are those of regular.Open.
func (Files) Get(ctx context.Context, path string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return regular.Read(path, MaxFileBytes)
}
