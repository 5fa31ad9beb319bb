package raster

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"image/jpeg"
	"slices"
	"strings"
	"testing"
)

// The order of a block's coefficients begins and ends as in figure A.6 of Rec. ITU-T T.81, and has each place once.
func TestZigzag(t *testing.T) {
	t.Parallel()
	z := zigzag()
	if !slices.Equal(z[:10], []int{0, 1, 8, 16, 9, 2, 3, 10, 17, 24}) || z[63] != 63 {
		t.Errorf("places %v", z)
	}
	sorted := slices.Sorted(slices.Values(z[:]))
	for i, v := range sorted {
		if v != i {
			t.Fatalf("places %v", z)
		}
	}
}

func TestReadJPEGHeader(t *testing.T) {
	t.Parallel()
	encode := func(src image.Image) []byte {
		var buf bytes.Buffer
		must(t, jpeg.Encode(&buf, src, &jpeg.Options{Quality: 50}))
		return buf.Bytes()
	}
	colour, grey := encode(image.NewRGBA(image.Rect(0, 0, 9, 7))), encode(image.NewGray(image.Rect(0, 0, 9, 7)))
	h, err := ReadJPEGHeader(colour)
	if err != nil || h.Across != 2 || h.Down != 2 || len(h.Chroma) != 2 || !slices.Equal(h.Luma[:9], []uint16{16, 11, 10, 16, 24, 40, 51, 61, 12}) ||
		!slices.Equal(h.Chroma[1][:5], []uint16{17, 18, 24, 47, 99}) {
		t.Errorf("%+v, %v", h, err)
	}
	if h, err = ReadJPEGHeader(grey); err != nil || h.Across != 1 || h.Down != 1 || h.Chroma != nil || h.Luma[63] != 99 {
		t.Errorf("%+v, %v", h, err)
	}
	// 4:2:2, three different identifiers without JFIF.
	at := bytes.Index(colour, []byte{0xff, 0xc0})
	wide := bytes.Clone(colour)
	wide[at+11] = 0x21
	if h, err = ReadJPEGHeader(wide); err != nil || h.Across != 2 || h.Down != 1 {
		t.Errorf("%+v, %v", h, err)
	}
	rgb := bytes.Clone(colour)
	rgb[at+10], rgb[at+13], rgb[at+16] = 'R', 'G', 'B'
	// The faults that have a remedy, or are none of the file's, are named.
	coded, cmyk, bare := bytes.Clone(colour), bytes.Clone(colour), bytes.Clone(colour)
	coded[at+1], cmyk[at+9], bare[at+12] = 0xc9, 4, 3
	cmyk = slices.Insert(cmyk, at+19, 4, 0x11, 1)
	cmyk[at+3] += 3
	for why, data := range map[string][]byte{"jpegtran": coded, "stores CMYK": cmyk, "lacks a quantisation table": bare} {
		if h, err := ReadJPEGHeader(data); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %+v, %v", why, h, err)
		}
	}
	zero := bytes.Clone(colour)
	zero[bytes.Index(colour, []byte{0xff, 0xdb})+7] = 0
	for name, data := range map[string][]byte{"RGB": rgb, "a step of 0": zero, "no frame": colour[:at], "PNG": []byte("\x89PNG\r\n\x1a\n"), "": nil} {
		if h, err := ReadJPEGHeader(data); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %+v, %v", name, h, err)
		}
	}
	for n := range colour {
		_, _ = ReadJPEGHeader(colour[:n]) // no panic
	}
}

// DecodeStored has the samples of complete blocks of a JPEG file, whatever its orientation, and ProbeStored its stored size.
func TestDecodeStored(t *testing.T) {
	t.Parallel()
	var buf bytes.Buffer
	must(t, jpeg.Encode(&buf, image.NewRGBA(image.Rect(0, 0, 20, 10)), nil))
	data := withOrientation(buf.Bytes(), binary.BigEndian, 6)
	p, w, h, orientation, err := DecodeStored(data)
	if err != nil || w != 20 || h != 10 || orientation != 6 || p.Image.Width != 32 || p.Image.Height != 16 {
		t.Errorf("%d×%d, orientation %d, %v", w, h, orientation, err)
	}
	if w, h, err := ProbeStored(data); err != nil || w != 20 || h != 10 {
		t.Errorf("%d×%d, %v", w, h, err)
	}
	if w, h, err := ProbePicture(data); err != nil || w != 10 || h != 20 {
		t.Errorf("%d×%d, %v", w, h, err)
	}
	row := &Image{Channels: 1, Height: 1, Width: 3, Pix: []float32{1, 2, 3}}
	if got := ExtendWhole(row, 8, 1).Pix; !slices.Equal(got, []float32{1, 2, 3, 3, 2, 1, 1, 2}) {
		t.Errorf("extended %v", got)
	}
	if got := ExtendWhole(row, 2, 1).Pix; !slices.Equal(got, []float32{1, 2}) {
		t.Errorf("cropped %v", got)
	}
}

// TestIsLossy: JPEG files and WebP files are lossy unless these are lossless, with an extended header too.
func TestIsLossy(t *testing.T) {
	t.Parallel()
	picture := filled(image.NewNRGBA(image.Rect(0, 0, 8, 8)), func(int, int) color.Color { return color.White })
	lossy := readFile(t, "rgb_16x16_lossy.webp")
	extended := append([]byte("RIFF\x00\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00\x0f\x00\x00\x0f\x00\x00"), lossy[len(webpMagic):]...)
	for name, c := range map[string]struct {
		data []byte
		want bool
	}{
		"png": {encodePNG(t, picture), false}, "jpeg": {encodeJPEG(t, picture), true}, "lossless webp": {readFile(t, "rgba_5x4_lossless.webp"), false},
		"lossy webp": {lossy, true}, "extended webp": {extended, true}, "nothing": {nil, false},
	} {
		if got := IsLossy(c.data); got != c.want {
			t.Errorf("%s: lossy %t, want %t", name, got, c.want)
		}
	}
}
