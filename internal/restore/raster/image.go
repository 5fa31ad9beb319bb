package raster

import (
	"fmt"
	"slices"
)

// Image is an image as a tensor.
type Image struct {
	Channels, Height, Width int
	// Pix contains the values, nominally in [-1, 1], in the order channel, row, column: the value of channel c at row y,
	// column x is Pix[(c*Height+y)*Width+x].
	Pix []float32
}

// New returns an image of zeros (mid-grey).
func New(channels, height, width int) *Image {
	return &Image{
		Channels: channels, Height: height, Width: width,
		Pix: make([]float32, channels*height*width),
	}
}

// Plane returns the Height*Width values of channel c; it shares memory with the image.
func (m *Image) Plane(c int) []float32 {
	n := m.Height * m.Width
	return m.Pix[c*n : (c+1)*n : (c+1)*n]
}

// Clone returns a copy that shares no memory.
func (m *Image) Clone() *Image {
	c := *m
	c.Pix = slices.Clone(m.Pix)
	return &c
}

// Validate returns [ErrShape] if a dimension is not positive or Pix does not have one value per channel and pixel.
func (m *Image) Validate() error {
	if m.Channels < 1 || m.Height < 1 || m.Width < 1 {
		return fmt.Errorf("image has %d channels of %dx%d pixels, all must be positive: %w",
			m.Channels, m.Width, m.Height, ErrShape)
	}
	if want := m.Channels * m.Height * m.Width; len(m.Pix) != want {
		return fmt.Errorf("image of %d channels, %dx%d pixels has %d values, want %d: %w",
			m.Channels, m.Width, m.Height, len(m.Pix), want, ErrShape)
	}
	return nil
}

// To8 maps v in [-1, 1] to 0..255, rounding to nearest with halves away from zero. It clamps values outside the range
// and maps NaN to 0.
func To8(v float32) uint8 {
	p := (float64(v)+1)*127.5 + 0.5 // exact next to a half, so that cutting off rounds as math.Round
	switch {
	case p >= 255:
		return 255
	case p >= 0:
		return uint8(int(p))
	default: // negative or NaN
		return 0
	}
}

// Finite reports whether all values are finite. index is that of the first NaN or infinity, or -1.
func Finite(values []float32) (index int, ok bool) {
	for i := finiteFast(values); i < len(values); i++ {
		if d := values[i] - values[i]; d != d {
			return i, false
		}
	}
	return -1, true
}
