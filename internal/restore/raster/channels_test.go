package raster_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"ddiff/internal/restore/raster"
)

// TestInChannels: grey of equal channels is exact, that of others their luma.
func TestInChannels(t *testing.T) {
	t.Parallel()
	grey := &raster.Image{Channels: 1, Height: 1, Width: 3, Pix: []float32{-1, 0.1, 0.3}}
	three, err := raster.InChannels(grey, 3)
	if err != nil || !slices.Equal(three.Pix, slices.Repeat(grey.Pix, 3)) {
		t.Fatalf("%v, %v", three, err)
	}
	back, err := raster.InChannels(three, 1)
	if err != nil || !slices.Equal(back.Pix, grey.Pix) {
		t.Errorf("%v, %v, want %v", back, err, grey.Pix)
	}
	three.Plane(0)[1], three.Plane(2)[1] = 1, -1
	luma, err := raster.InChannels(three, 1)
	if want := 0.299 + 0.587*0.1 - 0.114; err != nil || math.Abs(float64(luma.Pix[1])-want) > 1e-7 || luma.Pix[0] != -1 {
		t.Errorf("%v, %v, want luma %v", luma, err, want)
	}
	if same, err := raster.InChannels(three, 3); err != nil || same != three {
		t.Errorf("%v, %v, want the image itself", same, err)
	}
	if _, err := raster.InChannels(raster.New(2, 1, 1), 1); !errors.Is(err, raster.ErrShape) {
		t.Errorf("two channels: %v", err)
	}
}

// TestSamples reads the form of a picture from its header.
func TestSamples(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		channels, bits int
	}{{1, 8}, {1, 16}, {3, 8}, {3, 16}} {
		data, err := raster.EncodePicture(raster.New(c.channels, 4, 4), raster.Picture{Bits: c.bits})
		if err != nil {
			t.Fatal(err)
		}
		if grey, bits := raster.Samples(data); grey != (c.channels == 1) || bits != c.bits {
			t.Errorf("%+v: grey %v, %d bits", c, grey, bits)
		}
	}
	if grey, bits := raster.Samples([]byte("no picture")); grey || bits != 8 {
		t.Errorf("no picture: grey %v, %d bits", grey, bits)
	}
}
