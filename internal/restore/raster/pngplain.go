package raster

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"io"

	"github.com/klauspost/compress/zlib"

	"ddiff/internal/restore/raster/metadata"
)

const rgb = 3 // bytes of a pixel of plainRGB

// plainRGB decodes a whole PNG file of red, green and blue with 8 bits, neither transparent nor interlaced, in two thirds of the time of the standard library. It
// returns nil for any other file, and for a damaged one, of which the standard library tells what is wrong.
func plainRGB(file []byte) *image.RGBA {
	header, body := plainChunks(file)
	if header == nil {
		return nil
	}
	z, err := zlib.NewReader(body)
	if err != nil {
		return nil
	}
	img := image.NewRGBA(image.Rect(0, 0, int(binary.BigEndian.Uint32(header)), int(binary.BigEndian.Uint32(header[4:]))))
	row := make([]byte, rgb+rgb*img.Rect.Dx()) // begins with a pixel of zeros, whose last byte gives way to the filter while it is read
	above := make([]byte, len(row))
	for dst := img.Pix; len(dst) > 0; row, above = above, row {
		_, err := io.ReadFull(z, row[rgb-1:])
		filter := row[rgb-1]
		row[rgb-1] = 0
		if err != nil || filter > paeth {
			return nil
		}
		unfilter(filter, row, above)
		for at := rgb; at < len(row); at, dst = at+rgb, dst[4:] {
			dst[0], dst[1], dst[2], dst[3] = row[at], row[at+1], row[at+2], 255
		}
	}
	// At the end the reader compares the checksum.
	if _, err := io.ReadFull(z, row[:1]); !errors.Is(err, io.EOF) || body.Len() > 0 {
		return nil
	}
	return img
}

// IsPlain reports whether a file is one that plainRGB decodes and contains nothing else: no metadata, no bytes after its end. Its pixels are not decoded.
func IsPlain(file []byte) bool {
	const frame = 12 // bytes of a chunk beside its data
	size := len(metadata.PNGMagic)
	for c, err := range metadata.PNGChunks(file) {
		if err != nil || c.Kind != "IHDR" && c.Kind != "IDAT" && c.Kind != "IEND" {
			return false
		}
		size += frame + len(c.Data)
	}
	header, _ := plainChunks(file)
	return header != nil && size == len(file)
}

// plainChunks returns the header and the pixels of a PNG file. The header is nil if it is that of another form, or a chunk is damaged, has an unusual place or
// changes the pixels.
func plainChunks(file []byte) (header []byte, body *bytes.Reader) {
	var pixels []byte // with the capacity for all chunks of them
	before := ""
	for c, err := range metadata.PNGChunks(file) {
		switch {
		case err != nil:
			return nil, nil
		case c.Kind == "IHDR" && before == "" && len(c.Data) == 13 && bytes.Equal(c.Data[8:], []byte{8, 2, 0, 0, 0}):
			header = c.Data
		case c.Kind == "IDAT" && pixels == nil:
			pixels = append(make([]byte, 0, len(file)), c.Data...)
		case c.Kind == "IDAT" && before == "IDAT":
			pixels = append(pixels, c.Data...)
		case c.Kind == "IEND" && len(c.Data) == 0:
		case c.Kind == "tRNS", c.Kind[0]&0x20 == 0: // a critical one
			return nil, nil
		}
		before = c.Kind
	}
	return header, bytes.NewReader(pixels)
}

// unfilter restores the samples of a row from their differences. Both rows begin with a pixel of zeros.
func unfilter(filter byte, row, above []byte) {
	here, left := row[rgb:], row
	up, corner := above[rgb:][:len(here)], above[:len(here)]
	switch filter {
	case 1:
		for i := range here {
			here[i] += left[i]
		}
	case 2:
		for i := range here {
			here[i] += up[i]
		}
	case 3:
		for i := range here {
			here[i] += byte((int(left[i]) + int(up[i])) / 2)
		}
	case paeth:
		for i := range here {
			here[i] += nearest(left[i], up[i], corner[i])
		}
	}
}
