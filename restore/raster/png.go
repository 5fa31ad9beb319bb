package raster

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
)

// EncodePNG encodes an image of one (grey) or three (RGB) channels with 8 bits per sample, rounded by [To8]. Equal images
// give equal bytes. Values outside [-1, 1] are clamped. Errors are [ErrNotFinite] and [ErrShape].
func EncodePNG(img *Image) ([]byte, error) {
	if err := img.Validate(); err != nil {
		return nil, fmt.Errorf("encode PNG: %w", err)
	}
	if i, ok := Finite(img.Pix); !ok {
		return nil, fmt.Errorf("encode PNG: value %d is %v: %w", i, img.Pix[i], ErrNotFinite)
	}
	area := image.Rect(0, 0, img.Width, img.Height)
	var dst image.Image
	switch img.Channels {
	case 1:
		grey := image.NewGray(area)
		for i, v := range img.Pix {
			grey.Pix[i] = To8(v)
		}
		dst = grey
	case 3:
		// Opaque, so that the file has no alpha channel.
		rgb := image.NewNRGBA(area)
		r, g, b := img.Plane(0), img.Plane(1), img.Plane(2)
		for i := range r {
			p := rgb.Pix[4*i : 4*i+4]
			p[0], p[1], p[2], p[3] = To8(r[i]), To8(g[i]), To8(b[i]), 255
		}
		dst = rgb
	default:
		return nil, fmt.Errorf("encode PNG: image has %d channels, must be 1 or 3: %w", img.Channels, ErrShape)
	}
	var buf bytes.Buffer
	// Better compression takes four times as long.
	encoder := png.Encoder{CompressionLevel: png.BestSpeed}
	if err := encoder.Encode(&buf, dst); err != nil {
		return nil, fmt.Errorf("encode PNG: %w", err)
	}
	return buf.Bytes(), nil
}
