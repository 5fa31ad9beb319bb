package raster

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math"
	"os"
	"strings"
	"testing"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func encodePNG(t testing.TB, m image.Image) []byte {
	t.Helper()
	var buf bytes.Buffer
	must(t, png.Encode(&buf, m))
	return buf.Bytes()
}

func encodeTIFF(t testing.TB, m image.Image) []byte {
	t.Helper()
	var buf bytes.Buffer
	must(t, tiff.Encode(&buf, m, &tiff.Options{Compression: tiff.Deflate, Predictor: true}))
	return buf.Bytes()
}

func encodeJPEG(t testing.TB, m image.Image) []byte {
	t.Helper()
	var buf bytes.Buffer
	must(t, jpeg.Encode(&buf, m, &jpeg.Options{Quality: 95}))
	return buf.Bytes()
}

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	must(t, err)
	return data
}

// filled sets every pixel of an image to the function's colour.
func filled[M interface {
	image.Image
	Set(x, y int, c color.Color)
}](m M, at func(x, y int) color.Color) M {
	for y := range m.Bounds().Dy() {
		for x := range m.Bounds().Dx() {
			m.Set(x, y, at(x, y))
		}
	}
	return m
}

// value returns the level of a sample in [0, 1].
func value(p float64) float32 { return float32(2*p - 1) }

func near(a, b float32) bool { return math.Abs(float64(a)-float64(b)) <= 1e-6 }

// TestDecodePixels compares every pixel type with values computed from the samples.
func TestDecodePixels(t *testing.T) {
	t.Parallel()
	area := image.Rect(0, 0, 6, 5)
	colour8 := func(x, y int) (r, g, b, a uint8) {
		return uint8(40 * x), uint8(50 * y), uint8(255 - 8*x*y), uint8(255 - 30*x)
	}
	palette := color.Palette{
		color.RGBA{10, 20, 30, 255}, color.NRGBA{200, 100, 50, 51}, color.RGBA{255, 255, 255, 255}, color.NRGBA{9, 9, 9, 0},
	}
	grey := filled(image.NewGray(area), func(x, y int) color.Color { return color.Gray{uint8(31*x + y)} })
	grey16 := filled(image.NewGray16(area), func(x, y int) color.Color { return color.Gray16{uint16(9001*x + 3*y)} })
	rgba := filled(image.NewRGBA(area), func(x, y int) color.Color {
		r, g, b, _ := colour8(x, y)
		return color.RGBA{r, g, b, 255}
	})
	nrgba := filled(image.NewNRGBA(area), func(x, y int) color.Color {
		r, g, b, a := colour8(x, y)
		return color.NRGBA{r, g, b, a}
	})
	nrgba64 := filled(image.NewNRGBA64(area), func(x, y int) color.Color {
		return color.NRGBA64{uint16(10007 * x), uint16(12007 * y), uint16(257*x*y + 1), uint16(65535 - 9001*x)}
	})
	paletted := image.NewPaletted(area, palette)
	for i := range paletted.Pix {
		paletted.Pix[i] = uint8(i % len(palette))
	}
	premultiplied := image.NewRGBA64(area)
	for y := range 5 {
		for x := range 6 {
			premultiplied.SetRGBA64(x, y, color.RGBA64{uint16(1000 * x), uint16(2000 * y), 77, uint16(30000 + 5000*x)})
		}
	}

	// The file was written by Pillow with lossless=True, exact=True from these samples.
	webp := filled(image.NewNRGBA(image.Rect(0, 0, 5, 4)), func(x, y int) color.Color {
		a := uint8(255)
		if (x+y)%3 == 0 {
			a = 102
		}
		return color.NRGBA{uint8(50 * x), uint8(60 * y), uint8(255 - 10*x*y), a}
	})

	tests := []struct {
		name, format string
		data         []byte
		source       image.Image
	}{
		{"png grey", "png", encodePNG(t, grey), grey},
		{"png grey 16 bit", "png", encodePNG(t, grey16), grey16},
		{"png rgb", "png", encodePNG(t, rgba), rgba},
		{"png rgba", "png", encodePNG(t, nrgba), nrgba},
		{"png rgba 16 bit", "png", encodePNG(t, nrgba64), nrgba64},
		{"png palette with alpha", "png", encodePNG(t, paletted), paletted},
		{"tiff grey", "tiff", encodeTIFF(t, grey), grey},
		{"tiff grey 16 bit", "tiff", encodeTIFF(t, grey16), grey16},
		{"tiff rgb", "tiff", encodeTIFF(t, rgba), rgba},
		{"tiff rgba", "tiff", encodeTIFF(t, nrgba), nrgba},
		{"tiff rgba 16 bit", "tiff", encodeTIFF(t, nrgba64), nrgba64},
		{"tiff premultiplied 16 bit", "tiff", encodeTIFF(t, premultiplied), premultiplied},
		{"webp lossless rgba", "webp", readFile(t, "rgba_5x4_lossless.webp"), webp},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			width, height := tt.source.Bounds().Dx(), tt.source.Bounds().Dy()
			w, h, err := Probe(tt.data)
			if err != nil || w != width || h != height || FormatOf(tt.data) != tt.format {
				t.Fatalf("Probe = %d, %d, %q, %v; want %d, %d, %q", w, h, FormatOf(tt.data), err, width, height, tt.format)
			}
			img, err := Decode(tt.data)
			must(t, err)
			if err := img.Validate(); err != nil || img.Channels != 3 || img.Width != width || img.Height != height {
				t.Fatalf("image %d channels %dx%d, %v", img.Channels, img.Width, img.Height, err)
			}
			for y := range height {
				for x := range width {
					for c, want := range onWhite(tt.source.At(x, y)) {
						if got := img.Plane(c)[y*width+x]; !near(got, want) {
							t.Fatalf("channel %d at (%d,%d) = %v, want %v", c, x, y, got, want)
						}
					}
				}
			}
		})
	}
}

// onWhite returns a colour on a white ground.
func onWhite(c color.Color) [3]float32 {
	straight := func(r, g, b, a, most float64) [3]float32 {
		return [3]float32{value((r*a/most + most - a) / most), value((g*a/most + most - a) / most), value((b*a/most + most - a) / most)}
	}
	switch c := c.(type) {
	case color.NRGBA:
		return straight(float64(c.R), float64(c.G), float64(c.B), float64(c.A), 255)
	case color.NRGBA64:
		return straight(float64(c.R), float64(c.G), float64(c.B), float64(c.A), 65535)
	}
	r, g, b, a := c.RGBA()
	rest := 65535 - float64(a)
	return [3]float32{value((float64(r) + rest) / 65535), value((float64(g) + rest) / 65535), value((float64(b) + rest) / 65535)}
}

func TestDecodeLossy(t *testing.T) {
	t.Parallel()
	area := image.Rect(0, 0, 16, 16)
	flat := filled(image.NewRGBA(area), func(_, _ int) color.Color { return color.RGBA{200, 100, 50, 255} })
	grey := filled(image.NewGray(area), func(_, _ int) color.Color { return color.Gray{120} })
	for name, tt := range map[string]struct {
		data []byte
		want [3]float64
	}{
		"jpeg colour": {encodeJPEG(t, flat), [3]float64{200, 100, 50}},
		"jpeg grey":   {encodeJPEG(t, grey), [3]float64{120, 120, 120}},
		"webp lossy":  {readFile(t, "rgb_16x16_lossy.webp"), [3]float64{200, 100, 50}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			img, err := Decode(tt.data)
			must(t, err)
			for c, want := range tt.want {
				for i, v := range img.Plane(c) {
					if got := (float64(v) + 1) * 127.5; !(math.Abs(got-want) <= 3) {
						t.Fatalf("channel %d pixel %d = %.1f, want %v", c, i, got, want)
					}
				}
			}
		})
	}
}

// TestDecode16BitPrecision: 16-bit levels that share an 8-bit level stay distinct.
func TestDecode16BitPrecision(t *testing.T) {
	t.Parallel()
	ramp := filled(image.NewGray16(image.Rect(0, 0, 256, 256)), func(x, y int) color.Color {
		return color.Gray16{uint16(256*y + x)}
	})
	for name, data := range map[string][]byte{"png": encodePNG(t, ramp), "tiff": encodeTIFF(t, ramp)} {
		img, err := Decode(data)
		must(t, err)
		for i, v := range img.Plane(1) {
			if got := math.Round((float64(v) + 1) * 32767.5); got != float64(i) {
				t.Fatalf("%s: level %d decoded as %v", name, i, got)
			}
		}
	}
}

func TestDecodeTruncated(t *testing.T) {
	t.Parallel()
	area := image.Rect(0, 0, 9, 7)
	picture := filled(image.NewNRGBA(area), func(x, y int) color.Color {
		return color.NRGBA{uint8(25 * x), uint8(30 * y), uint8(x * y), uint8(255 - x)}
	})
	for name, data := range map[string][]byte{
		"png": encodePNG(t, picture), "jpeg": encodeJPEG(t, picture), "webp": readFile(t, "rgba_5x4_lossless.webp"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := Decode(data); err != nil {
				t.Fatal(err)
			}
			for n := range data {
				_, err := Decode(data[:n])
				if !errors.Is(err, ErrTruncated) && !errors.Is(err, ErrFormat) {
					t.Fatalf("first %d of %d bytes: error %v", n, len(data), err)
				}
			}
			if _, err := Decode(data[:len(data)-2]); !errors.Is(err, ErrTruncated) {
				t.Errorf("without the last two bytes: %v, want ErrTruncated", err)
			}
		})
	}
}

// TestDecodeTruncatedTIFF: the file ends with the resolution, two rational numbers of 8 bytes that the decoder ignores.
func TestDecodeTruncatedTIFF(t *testing.T) {
	t.Parallel()
	data := encodeTIFF(t, image.NewNRGBA(image.Rect(0, 0, 9, 7)))
	for n := range len(data) - 16 {
		_, err := Decode(data[:n])
		if !errors.Is(err, ErrTruncated) && !errors.Is(err, ErrFormat) {
			t.Fatalf("first %d of %d bytes: error %v", n, len(data), err)
		}
	}
}

func TestDecodeNotAnImage(t *testing.T) {
	t.Parallel()
	grey := image.NewGray(image.Rect(0, 0, 8, 8))
	damagedPNG := encodePNG(t, grey)
	damagedPNG[20] ^= 1 // width, so that the checksum is wrong
	damagedJPEG := bytes.Replace(encodeJPEG(t, grey), []byte("\xff\xc0\x00\x0b\x08"), []byte("\xff\xc0\x00\x0b\x07"), 1)
	for name, tt := range map[string]struct {
		data []byte
		want error
	}{
		"empty":                     {nil, ErrTruncated},
		"text":                      {[]byte("hello, world"), ErrFormat},
		"gif without pixels":        {[]byte("GIF89a\x01\x00\x01\x00"), ErrFormat},
		"png with a wrong checksum": {damagedPNG, ErrFormat},
		"jpeg of 7 bits":            {damagedJPEG, ErrFormat},
	} {
		if _, err := Decode(tt.data); !errors.Is(err, tt.want) {
			t.Errorf("%s: Decode error %v, want %v", name, err, tt.want)
		}
		if _, _, err := Probe(tt.data); !errors.Is(err, tt.want) {
			t.Errorf("%s: Probe error %v, want %v", name, err, tt.want)
		}
	}
}

func TestGuardRecoversPanic(t *testing.T) {
	t.Parallel()
	var none []byte
	err := guard("png", func() error { _ = none[len(none)]; return nil })
	if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "png") {
		t.Errorf("error %v, want ErrFormat naming the format", err)
	}
}

func FuzzDecode(f *testing.F) {
	area := image.Rect(0, 0, 9, 7)
	picture := filled(image.NewNRGBA(area), func(x, y int) color.Color {
		return color.NRGBA{uint8(25 * x), uint8(30 * y), uint8(x * y), uint8(255 - x)}
	})
	f.Add(encodePNG(f, picture))
	f.Add(encodeTIFF(f, picture))
	f.Add(withOrientation(encodeJPEG(f, picture), binary.BigEndian, 6))
	var asBMP, asGIF bytes.Buffer
	must(f, errors.Join(bmp.Encode(&asBMP, picture), gif.Encode(&asGIF, picture, nil)))
	f.Add(asBMP.Bytes())
	f.Add(asGIF.Bytes())
	f.Add(readFile(f, "rgba_5x4_lossless.webp"))
	f.Add(readFile(f, "rgb_16x16_lossy.webp"))
	f.Add(pngHeader(30000, 30000))
	f.Fuzz(func(t *testing.T, data []byte) {
		if w, h, err := Probe(data); err == nil && w > 1<<16/h {
			return // decoding an image of this size is slow
		}
		img, err := Decode(data)
		if err != nil {
			if !errors.Is(err, ErrFormat) && !errors.Is(err, ErrTruncated) && !errors.Is(err, ErrTooLarge) && !errors.Is(err, ErrNotFinite) {
				t.Fatalf("error without a sentinel: %v", err)
			}
			return
		}
		if err := img.Validate(); err != nil || img.Channels != 3 {
			t.Fatalf("%d channels, %v", img.Channels, err)
		}
		for i, v := range img.Pix {
			if !(v >= -1 && v <= 1) {
				t.Fatalf("value %d is %v", i, v)
			}
		}
		if w, h, err := Probe(data); err != nil || w != img.Width || h != img.Height {
			t.Fatalf("Probe returns %dx%d, %v; decoded %dx%d", w, h, err, img.Width, img.Height)
		}
	})
}

// TestOpaqueLevels: opaque pictures with 8 bits, which are converted by a table, get the values of single pixels.
func TestOpaqueLevels(t *testing.T) {
	t.Parallel()
	src := image.NewRGBA(image.Rect(0, 0, 40, 8))
	for i := range src.Pix {
		if src.Pix[i] = uint8(i * 7); i%4 == 3 {
			src.Pix[i] = 255
		}
	}
	src = src.SubImage(image.Rect(3, 1, 40, 8)).(*image.RGBA)
	got := fromImage(src, color.YCbCrToRGB)
	for i := range got.Plane(0) {
		r, g, b := levels(src.At(3+i%37, 1+i/37), color.YCbCrToRGB)
		if got.Plane(0)[i] != r || got.Plane(1)[i] != g || got.Plane(2)[i] != b {
			t.Fatalf("pixel %d is %v, %v, %v, want %v, %v, %v", i, got.Plane(0)[i], got.Plane(1)[i], got.Plane(2)[i], r, g, b)
		}
	}
}
