package raster

import (
	"errors"
	"image"
	"testing"
)

// TestSniff: the first 16 bytes of a file suffice, and decide as the complete file does.
func TestSniff(t *testing.T) {
	t.Parallel()
	img := image.NewGray(image.Rect(0, 0, 64, 64))
	for name, data := range map[string][]byte{
		"png": encodePNG(t, img), "tiff": encodeTIFF(t, img), "jpeg": encodeJPEG(t, img), "webp": readFile(t, "rgba_5x4_lossless.webp"),
	} {
		if err := Sniff(data[:16], int64(len(data))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := Sniff(data[:16], MaxBytes+1); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s above the limit: %v", name, err)
		}
		if err := Sniff(data[:16], -1); err != nil {
			t.Errorf("%s of unknown size: %v", name, err)
		}
	}
	for text, want := range map[string]error{"": ErrTruncated, "\x89P": ErrTruncated, "GIF89a": ErrFormat, "\x00": ErrFormat} {
		_, _, _, probe := Probe([]byte(text))
		if err := Sniff([]byte(text), int64(len(text))); !errors.Is(err, want) || err.Error() != probe.Error() {
			t.Errorf("%q: %v, want %v", text, err, probe)
		}
	}
}
