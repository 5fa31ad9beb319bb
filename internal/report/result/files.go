package result

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"ddiff/storage"
)

// Files is the store with the artifacts of the items. The report goes to the same store.
type Files interface {
	// Get returns the bytes under the key.
	Get(ctx context.Context, key string) ([]byte, error)
	// Put stores the bytes under the key and replaces the previous object.
	Put(ctx context.Context, key string, data []byte) error
	// List and Delete find and remove the files of an earlier report.
	List(ctx context.Context, prefix string) iter.Seq2[storage.Info, error]
	Delete(ctx context.Context, key string) error
}

// Put stores a file of the report. The error names its key.
func Put(ctx context.Context, store Files, key string, data []byte) error {
	if err := store.Put(ctx, key, data); err != nil {
		return fmt.Errorf("write %s: %w", key, err)
	}
	return nil
}

// Incomplete joins the distinct errors into one of bounded length: several pictures may need one artifact. It returns nil
// without errors.
func Incomplete(all []error) error {
	var lost []error
	known := make(map[string]bool)
	for _, err := range all {
		if text := err.Error(); !known[text] {
			known[text] = true
			lost = append(lost, err)
		}
	}
	if len(lost) == 0 {
		return nil
	}
	const shown = 3
	err := errors.Join(lost[:min(shown, len(lost))]...)
	if more := len(lost) - shown; more > 0 {
		return fmt.Errorf("%w: %w\nand %d more", ErrIncomplete, err, more)
	}
	return fmt.Errorf("%w: %w", ErrIncomplete, err)
}
