package result

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"ddiff/internal/regular"
	"ddiff/restore/item"
	"ddiff/storage"
)

// Folder is the store of a report over several outputs: it reads artifacts from the first output that has them, and
// writes to a store of its own, to which the pictures of the page are copied.
type Folder struct {
	Outputs []Output
	Files   // the own store
}

// Get implements the store of a report.
func (f Folder) Get(ctx context.Context, key string) ([]byte, error) {
	err := fs.ErrNotExist
	for _, o := range f.Outputs {
		var data []byte
		if data, err = o.Store.Get(ctx, key); err == nil || !errors.Is(err, storage.ErrNotFound) && !errors.Is(err, fs.ErrNotExist) {
			return data, err
		}
	}
	return nil, err
}

// Artifact returns a file of an item from the first output that has it with the digest of the result. Without one the
// error wraps [ErrArtifact].
func (f Folder) Artifact(ctx context.Context, id, file, digest string) ([]byte, error) {
	key := item.Key(id, file)
	wrong := fmt.Errorf("%w: %s: no output has it", ErrArtifact, key)
	for _, o := range f.Outputs {
		data, err := o.Store.Get(ctx, key)
		switch {
		case errors.Is(err, storage.ErrNotFound), errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, err
		}
		if err = checkDigest(data, digest); err == nil {
			return data, nil
		}
		wrong = fmt.Errorf("%s: %w", storage.Locate(o.Address, key), err)
	}
	return nil, fmt.Errorf("%w; move the item's folder away and run its campaign again", wrong)
}

// checkDigest compares the SHA-256 of a file with that of its result.
func checkDigest(data []byte, digest string) error {
	if got := regular.SHA256(data); got != digest {
		return fmt.Errorf("%w: it has the SHA-256 %.12s, %s says %.12s", ErrArtifact, got, item.FileResult, digest)
	}
	return nil
}

// CopyPicture copies a picture that the page shows.
func (f Folder) CopyPicture(ctx context.Context, key string) error {
	data, err := f.Get(ctx, key)
	if err != nil {
		return fmt.Errorf("read %s: %w", key, err)
	}
	return Put(ctx, f.Files, key, data)
}
