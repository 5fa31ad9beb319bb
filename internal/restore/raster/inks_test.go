package raster

import (
	"math"
	"slices"
	"testing"

	"ddiff/internal/fuzztest"
	"ddiff/internal/restore/raster/metadata"
)

// TestInks converts CMYK by its profile as LittleCMS 2 does, whose values these are (profileToProfile of Pillow, to sRGB, relative colorimetric, which takes
// the only table that these profiles have). They have tables of 16 bits with curves of 5 values and a grid of 4, and of 8 bits with a grid of 3.
func TestInks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		side int // of a square of one colour
		want [16][3]float64
	}{
		"inks16.tif": {1, [16][3]float64{
			{255, 255, 255}, {0, 151, 218}, {216, 12, 123}, {247, 224, 0}, {40, 40, 40}, {19, 12, 5}, {128, 104, 93}, {83, 83, 83},
			{16, 82, 101}, {48, 30, 15}, {91, 84, 65}, {80, 75, 87}, {90, 60, 93}, {48, 41, 21}, {45, 37, 26}, {32, 21, 13},
		}},
		"inks8.jpg": {8, [16][3]float64{
			{255, 255, 255}, {0, 151, 218}, {216, 10, 122}, {247, 224, 0}, {40, 40, 40}, {20, 12, 5}, {130, 103, 92}, {84, 84, 84},
			{8, 91, 115}, {51, 33, 19}, {87, 80, 62}, {82, 74, 90}, {89, 64, 96}, {49, 42, 22}, {47, 38, 30}, {32, 22, 15},
		}},
	} {
		data := readFile(t, name)
		p, err := DecodePicture(data)
		must(t, err)
		img, err := Decode(data)
		must(t, err)
		if !p.CMYK || p.ByFormula || p.ProfileFits() || !slices.Equal(img.Pix, p.Image.Pix) {
			t.Errorf("%s: %+v", name, p)
		}
		worst, sum := 0., 0.
		for i, want := range c.want {
			at := (i/4*c.side+c.side/2)*4*c.side + i%4*c.side + c.side/2
			for k, v := range want {
				off := math.Abs((float64(img.Plane(k)[at])+1)*127.5 - v)
				worst, sum = max(worst, off), sum+off/48
			}
		}
		t.Logf("file=%s worst=%.2f mean=%.2f levels", name, worst, sum)
		if worst > 5 || sum > 0.6 {
			t.Errorf("%s: off by %.1f levels, %.1f in the mean", name, worst, sum)
		}
	}
}

// FuzzInks reads tables of profiles.
func FuzzInks(f *testing.F) {
	for _, name := range []string{"inks16.tif", "inks8.jpg"} {
		f.Add(metadata.Profile(readFile(f, name)), uint32(0x40ff8000))
	}
	f.Fuzz(func(t *testing.T, profile []byte, ink uint32) {
		fuzztest.Limit(t, 1<<20+64*len(profile), func() {
			k := readInks(profile)
			if k == nil {
				return
			}
			for _, v := range sRGB(k.lab([4]uint8{uint8(ink >> 24), uint8(ink >> 16), uint8(ink >> 8), uint8(ink)})) {
				if !(v >= 0 && v <= 1) {
					t.Errorf("value %v", v)
				}
			}
		})
	})
}
