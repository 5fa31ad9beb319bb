package report

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/png"

	"ddiff/manifest"
)

// files is the store: the report reads the items' artifacts from it and is written to it.
type files interface {
	// Get returns the bytes under the key.
	Get(ctx context.Context, key string) ([]byte, error)
	// Put stores the bytes under the key and replaces what was there.
	Put(ctx context.Context, key string, data []byte) error
}

// has reports whether the result says that the file was written.
func has(r *manifest.Result, file string) bool {
	_, ok := r.Artifacts[file]
	return ok
}

// picture reads one PNG of an item.
func picture(ctx context.Context, store files, r *manifest.Result, file string) (image.Image, error) {
	key := manifest.ItemKey(r.Item.ID, file)
	data, err := store.Get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", key, err)
	}
	return img, nil
}
