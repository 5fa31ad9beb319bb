package raster

import (
	"errors"
	"image"
	"math/rand/v2"
	"testing"
)

// TestSniff: the first 32 bytes of a file suffice, and decide as the complete file does.
func TestSniff(t *testing.T) {
	t.Parallel()
	img := image.NewGray(image.Rect(0, 0, 64, 64))
	for name, data := range map[string][]byte{
		"png": encodePNG(t, img), "tiff": encodeTIFF(t, img), "jpeg": encodeJPEG(t, img), "webp": readFile(t, "rgba_5x4_lossless.webp"),
	} {
		if err := Sniff(data[:SniffBytes], int64(len(data))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := Sniff(data[:SniffBytes], MaxBytes+1); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s above the limit: %v", name, err)
		}
		if err := Sniff(data[:SniffBytes], -1); err != nil {
			t.Errorf("%s of unknown size: %v", name, err)
		}
	}
	for text, want := range map[string]error{"": ErrTruncated, "\x89P": ErrTruncated, "GIF8": ErrTruncated, "\x00": ErrFormat} {
		_, _, probe := Probe([]byte(text))
		if err := Sniff([]byte(text), int64(len(text))); !errors.Is(err, want) || err.Error() != probe.Error() {
			t.Errorf("%q: %v, want %v", text, err, probe)
		}
	}
}

// TestExtraBytes: data behind the end of an image is limited, for files of any number of pixels.
func TestExtraBytes(t *testing.T) {
	t.Parallel()
	noisy := image.NewNRGBA64(image.Rect(0, 0, 500, 300))
	draw := rand.New(rand.NewPCG(1, 2))
	for i := range noisy.Pix {
		noisy.Pix[i] = byte(draw.Uint32())
	}
	for name, c := range map[string]struct {
		data    []byte
		content int64 // the largest that the header permits
	}{
		"small png":          {encodePNG(t, image.NewGray(image.Rect(0, 0, 64, 64))), 64*513 + 64*513/64},
		"random png":         {encodePNG(t, noisy), 300*4001 + 300*4001/64},
		"one column":         {encodePNG(t, image.NewNRGBA64(image.Rect(0, 0, 1, 70000))), 70000*9 + 70000*9/64},
		"webp":               {readFile(t, "rgba_5x4_lossless.webp"), int64(len(readFile(t, "rgba_5x4_lossless.webp")))},
		"jpeg has no bound":  {encodeJPEG(t, image.NewGray(image.Rect(0, 0, 64, 64))), MaxBytes - MaxExtraBytes},
		"tiff has no bound":  {encodeTIFF(t, image.NewGray(image.Rect(0, 0, 64, 64))), MaxBytes - MaxExtraBytes},
		"largest png":        {pngHeader(8192, 8192), MaxBytes - MaxExtraBytes},
		"png above the size": {pngHeader(30000, 30000), MaxBytes - MaxExtraBytes}, // Decode states its size in pixels
	} {
		if int64(len(c.data)) > c.content {
			t.Errorf("%s: a sound file of %d bytes exceeds %d", name, len(c.data), c.content)
		}
		beginning := c.data[:SniffBytes]
		if err := Sniff(beginning, c.content+MaxExtraBytes); err != nil {
			t.Errorf("%s at the limit: %v", name, err)
		}
		if err := Sniff(beginning, c.content+MaxExtraBytes+1); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s above the limit: %v", name, err)
		}
	}
	small := encodePNG(t, image.NewGray(image.Rect(0, 0, 64, 64)))
	if _, err := Decode(append(small, make([]byte, 1<<20)...)); err != nil {
		t.Errorf("a PNG with 1 MiB behind its end: %v", err)
	}
	if _, err := Decode(append(small, make([]byte, MaxExtraBytes+1<<20)...)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a PNG with 65 MiB behind its end: %v", err)
	}
}

// TestSniffAny: an array passes beside images, other files do not.
func TestSniffAny(t *testing.T) {
	t.Parallel()
	array, err := EncodeNPY([]int{2, 2}, make([]float32, 4))
	must(t, err)
	if err := SniffAny(array[:SniffBytes], 1<<40); err != nil {
		t.Errorf("array: %v", err)
	}
	if err := SniffAny([]byte("<html>"), 6); !errors.Is(err, ErrFormat) {
		t.Errorf("text: %v", err)
	}
	if err := SniffAny(pngHeader(8, 8)[:SniffBytes], MaxBytes); !errors.Is(err, ErrTooLarge) {
		t.Errorf("PNG of another size: %v", err)
	}
}
