package photograph

import (
	"bytes"
	"fmt"
	"slices"

	"ddiff/internal/restore/raster"
	"ddiff/internal/restore/raster/metadata"
)

// HasForm reports whether the file of a restored picture has the quality of the options, if it is JPEG, and lacks what it says beside its pixels only if
// they strip it. source is the file of its measurement. What another program has added to a file does not count, unless it is to be stripped: nothing tells it
// from the rest of what source says.
func HasForm(file, source []byte, o FileOptions) (bool, error) {
	width, height, err := raster.ProbePicture(file)
	if err != nil {
		return false, err
	}
	beside := metadata.Read(source).Upright(width, height)
	one := pixels{Image: raster.New(1, 1, 1), bits: 8}
	whole, err := one.encode(o, beside)
	if err != nil {
		return false, fmt.Errorf("encode a pixel: %w", err)
	}
	stripped, err := one.encode(o, metadata.Metadata{DPI: beside.DPI})
	if err != nil {
		return false, fmt.Errorf("encode a pixel: %w", err)
	}
	if o.Format == JPEG {
		was, err := raster.ReadJPEGHeader(file)
		if err != nil {
			return false, err
		}
		if now, err := raster.ReadJPEGHeader(whole); err != nil || !slices.Equal(was.Luma, now.Luma) {
			return false, err
		}
	}
	return sayEqual(whole, stripped) || sayEqual(file, stripped) == o.Strip, nil
}

// sayEqual reports whether two files say the same beside their pixels, apart from resolution and colours.
func sayEqual(a, b []byte) bool {
	x, y := metadata.Read(a), metadata.Read(b)
	texts := slices.EqualFunc(metadata.Texts(x.Chunks), metadata.Texts(y.Chunks), func(t, u metadata.PNGChunk) bool { return bytes.Equal(t.Data, u.Data) })
	return texts && bytes.Equal(x.EXIF, y.EXIF) && bytes.Equal(x.XMP, y.XMP) && bytes.Equal(x.IPTC, y.IPTC)
}
