package photograph_test

import (
	"bytes"
	"errors"
	"image/jpeg"
	"image/png"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/restore/photograph"
	"ddiff/internal/restore/raster"
)

// compressed is a picture after JPEG with colours of half the resolution.
func compressed(t *testing.T, p photograph.Noisy, quality int) photograph.Noisy {
	t.Helper()
	file, err := raster.EncodePNG(&raster.Image{Channels: p.Channels, Height: p.Height, Width: p.Width, Pix: p.Pix})
	if err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: quality}); err != nil {
		t.Fatal(err)
	}
	out, err := raster.Decode(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	p.Pix, p.Step = out.Pix, 2./255
	return p
}

// TestCompressed: in JPEG files the estimate is 1.2 to 1.8 times the noise, as is best for a restoration, or above where all of a picture has texture, as of the cat; the
// estimate of white noise is far below.
func TestCompressed(t *testing.T) {
	if testing.Short() {
		t.Skip("estimates many levels: make test-all")
	}
	t.Parallel()
	for i, path := range bundled(t) {
		name := strings.TrimSuffix(filepath.Base(path), ".png")
		for _, sigma := range []float64{0.05, 0.1} {
			for _, quality := range []int{75, 92} {
				high := 1.8
				switch name {
				case "hubble_deep_field": // of whose sky the noise is clipped
					continue
				case "chelsea":
					high = 2.4
				}
				p := compressed(t, noisy(loaded(t, path, 256), sigma, byte(i)), quality)
				got, err := photograph.EstimateCompressed(p)
				if err != nil || got < 1.15*sigma || got > high*sigma {
					t.Errorf("%s, quality %d: %g of %g, %v", name, quality, got, sigma, err)
				}
				t.Logf("%s %d %g: %g", name, quality, sigma, got)
			}
		}
	}
	p := compressed(t, noisy(flat(3, 128, 128), 0.06, 7), 90)
	if white := estimate(t, p); white > 0.02 {
		t.Errorf("the estimate of white noise is %g", white)
	}
	got, err := photograph.EstimateCompressed(p)
	if err != nil || math.Abs(got/0.06-1.2) > 0.1 {
		t.Errorf("of a constant picture: %g, %v", got, err)
	}
	if got, err = photograph.EstimateCompressed(compressed(t, greyed(noisy(flat(3, 128, 128), 0.06, 7)), 90)); err != nil || math.Abs(got/0.06-1) > 0.15 {
		t.Errorf("of a grey picture: %g, %v", got, err)
	}
	if got, err = photograph.EstimateCompressed(compressed(t, flat(3, 64, 64), 90)); err != nil || got > 0.003 {
		t.Errorf("of a constant picture without noise: %g, %v", got, err)
	}
	if _, err = photograph.EstimateCompressed(photograph.Noisy{Channels: 1, Height: 64, Width: 64, Pix: slices.Repeat([]float32{1}, 64*64)}); !errors.Is(err, photograph.ErrFewPatches) {
		t.Errorf("of a white picture: %v", err)
	}
}
