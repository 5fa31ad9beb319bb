package raster

import (
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"

	"golang.org/x/image/tiff"
	"golang.org/x/image/webp"
)

// codec is one file format.
type codec struct {
	name   string
	magic  string // a '?' matches any byte
	config func(io.Reader) (image.Config, error)
	decode func(io.Reader) (image.Image, error)
	// toRGB converts luma and chroma, if the file stores them.
	toRGB func(y, cb, cr uint8) (r, g, b uint8)
	// content returns the largest number of bytes that the pixels take, by the first SniffBytes bytes. Nil: the header
	// does not state it.
	content func(beginning []byte) (size int64, ok bool)
}

// codecs lists the supported formats.
func codecs() []codec {
	return []codec{
		{"png", "\x89PNG\r\n\x1a\n", png.DecodeConfig, png.Decode, color.YCbCrToRGB, pngContent},
		{"jpeg", "\xff\xd8\xff", jpeg.DecodeConfig, jpeg.Decode, color.YCbCrToRGB, nil},
		{"tiff", "II*\x00", tiff.DecodeConfig, tiff.Decode, color.YCbCrToRGB, nil},
		{"tiff", "MM\x00*", tiff.DecodeConfig, tiff.Decode, color.YCbCrToRGB, nil},
		{"webp", webpMagic, webp.DecodeConfig, webp.Decode, videoToRGB, webpContent},
	}
}

const webpMagic = "RIFF????WEBP"

// sniff detects the format of a complete file.
func sniff(data []byte) (codec, error) {
	c, err := formatOf(data)
	if err == nil && c.magic == webpMagic {
		// The decoder does not distinguish truncated from damaged files; the RIFF size does.
		if want := int64(binary.LittleEndian.Uint32(data[4:])) + 8; int64(len(data)) < want {
			return codec{}, fmt.Errorf("webp: the file has %d of %d bytes: %w", len(data), want, ErrTruncated)
		}
	}
	return c, err
}

// formatOf detects the format from the first bytes.
func formatOf(data []byte) (codec, error) {
	if len(data) == 0 {
		return codec{}, fmt.Errorf("the file is empty: %w", ErrTruncated)
	}
	for _, c := range codecs() {
		if !matches(data, c.magic) {
			continue
		}
		if len(data) < len(c.magic) {
			return codec{}, fmt.Errorf("the file ends after %d bytes: %w", len(data), ErrTruncated)
		}
		return c, nil
	}
	if matches(data, "II+\x00") || matches(data, "MM\x00+") {
		return codec{}, fmt.Errorf("tiff: the file is a BigTIFF; save it as a classic TIFF: %w", ErrFormat)
	}
	return codec{}, fmt.Errorf("not a PNG, JPEG, TIFF or WebP image: %w", ErrFormat)
}

// matches compares the common prefix of data and magic.
func matches(data []byte, magic string) bool {
	for i := 0; i < len(magic) && i < len(data); i++ {
		if magic[i] != '?' && magic[i] != data[i] {
			return false
		}
	}
	return true
}
