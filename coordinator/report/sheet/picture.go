package sheet

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/png"

	"ddiff/coordinator/report/result"
	"ddiff/manifest"
	"ddiff/restore/raster"
)

// Picture reads one PNG of an item.
func Picture(ctx context.Context, store result.Files, id, file string) (image.Image, error) {
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
