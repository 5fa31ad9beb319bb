package raster

import "fmt"

// RGB8 returns the 8-bit samples of an image, rounded by [To8]: row by row, red, green and blue of each pixel. Grey is
// replicated to the three channels. Files with equal samples show the same image, whatever their encoding. [ErrShape]:
// the number of channels is not 1 or 3.
func RGB8(img *Image) ([]byte, error) {
	if err := img.Validate(); err != nil {
		return nil, fmt.Errorf("read samples: %w", err)
	}
	if img.Channels != 1 && img.Channels != 3 {
		return nil, fmt.Errorf("read samples: image has %d channels, must be 1 or 3: %w", img.Channels, ErrShape)
	}
	out := make([]byte, 3*img.Width*img.Height)
	for c := range 3 {
		samples8(out[c:], img.Plane(min(c, img.Channels-1)), 3)
	}
	return out, nil
}

// samples8 writes the 8-bit samples of values, at the given distance.
func samples8(dst []byte, values []float32, distance int) {
	for i := samples8Fast(dst, values, distance); i < len(values); i++ {
		dst[i*distance] = To8(values[i])
	}
}
