package report

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"iter"

	"ddiff/manifest"
	"ddiff/restore/raster"
)

// files is the store with the artifacts of the items. The report goes to the same store.
type files interface {
	// Get returns the bytes under the key.
	Get(ctx context.Context, key string) ([]byte, error)
	// Put stores the bytes under the key and replaces the previous object.
	Put(ctx context.Context, key string, data []byte) error
}

// picture reads one PNG of an item.
func picture(ctx context.Context, store files, id, file string) (image.Image, error) {
	key := manifest.ItemKey(id, file)
	data, err := store.Get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	header, err := png.DecodeConfig(bytes.NewReader(data))
	if err == nil && header.Width > raster.MaxPixels/max(1, header.Height) {
		err = fmt.Errorf("%dx%d pixels, the limit is %d pixels", header.Width, header.Height, raster.MaxPixels)
	}
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", key, err)
	}
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", key, err)
	}
	return img, nil
}

// readerStore is a store that reads an object while it writes it, and may read it several times.
type readerStore interface {
	PutFrom(ctx context.Context, key string, data io.ReaderAt, size int64) error
}

// storeCSV stores results.csv. A store that is no readerStore gets all bytes at once.
func storeCSV(ctx context.Context, store files, c *columns, ordered iter.Seq2[*entry, error]) (err error) {
	var out spool
	defer func() { err = errors.Join(err, out.close()) }()
	if err := writeCSV(&out, c, ordered); err != nil {
		return err
	}
	if out.file == nil {
		err = store.Put(ctx, KeyCSV, out.memory)
	} else if s, ok := store.(readerStore); ok {
		err = s.PutFrom(ctx, KeyCSV, out.file, out.size)
	} else {
		var data []byte
		if data, err = io.ReadAll(io.NewSectionReader(out.file, 0, out.size)); err == nil {
			err = store.Put(ctx, KeyCSV, data)
		}
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", KeyCSV, err)
	}
	return nil
}
