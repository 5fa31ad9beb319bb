package raster

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// SniffBytes is the number of first bytes of a file that [Sniff] needs.
const SniffBytes = 32

// Sniff checks the first SniffBytes bytes of a file, fewer only of shorter files, and its size in bytes, negative if it is
// unknown. An error is one that [Probe] or [Decode] of the complete file returns.
func Sniff(beginning []byte, size int64) error {
	_, err := formatOf(beginning)
	if err == nil {
		err = checkSize(beginning, size)
	}
	if err != nil {
		return fmt.Errorf("read image header: %w", err)
	}
	return nil
}

// SniffAny checks as Sniff does, and accepts a .npy array of any size too.
func SniffAny(beginning []byte, size int64) error {
	if IsNPY(beginning) {
		return nil
	}
	return Sniff(beginning, size)
}

// checkSize compares the size of a file with the limits.
func checkSize(beginning []byte, size int64) error {
	if size > MaxBytes {
		return fmt.Errorf("file of %d bytes, the limit is %d bytes: %w", size, int64(MaxBytes), ErrTooLarge)
	}
	c, err := formatOf(beginning)
	if err != nil || c.content == nil {
		return nil //nolint:nilerr // header returns the error
	}
	if content, ok := c.content(beginning); ok && size-MaxExtraBytes > content {
		return fmt.Errorf("%s: file of %d bytes, its pixels take at most %d bytes and other data at most %d: %w",
			c.name, size, content, int64(MaxExtraBytes), ErrTooLarge)
	}
	return nil
}

// pngContent returns the largest size of the pixels of a PNG in bytes, by its header.
func pngContent(beginning []byte) (int64, bool) {
	const end = 24 // of width and height
	if len(beginning) < end || !strings.HasPrefix(string(beginning[12:]), "IHDR") {
		return 0, false
	}
	width, height := int64(binary.BigEndian.Uint32(beginning[16:])), int64(binary.BigEndian.Uint32(beginning[20:]))
	if width == 0 || height > MaxPixels/width {
		return 0, false // header or Decode returns the error
	}
	// Four samples of 16 bits per pixel, a filter byte per row, and the overhead of deflate and of chunks.
	raw := height * (1 + 8*width)
	return raw + raw/64, true
}

// webpContent returns the size of a WebP file in bytes, by its header.
func webpContent(beginning []byte) (int64, bool) {
	const end = 8 // of the size
	if len(beginning) < end {
		return 0, false
	}
	return int64(binary.LittleEndian.Uint32(beginning[4:])) + end, true
}
