package metric

import (
	"fmt"
	"math"

	"ddiff/restore/raster"
)

// PSNRID is the id of [PSNR]. Version 1: both images clipped to [-1, 1] and mapped to [0, 1], all channels together,
// -10 log10(mse + 1e-8), in dB. The constant is piq's; it limits the score to 80 dB, the score of identical images.
const PSNRID = "psnr@1"

// PSNR returns the peak signal-to-noise ratio of two images of equal shape, in dB. It is symmetric. Errors are
// [ErrShape] and [raster.ErrNotFinite].
func PSNR(x, y *raster.Image) (float64, error) {
	if err := checkPair(x, y); err != nil {
		return 0, fmt.Errorf("psnr: %w", err)
	}
	sum := 0.0
	var a, b [block]float32
	for at := 0; at < len(x.Pix); at += block {
		n := min(block, len(x.Pix)-at)
		halves(a[:], b[:], x.Pix[at:][:n], y.Pix[at:])
		sum += squares(b[:n])
	}
	return decibels(sum, len(x.Pix)), nil
}

// LumaID is the id of [PSNRLuma]. Version 1: as [PSNR], on 0.299 R + 0.587 G + 0.114 B.
const LumaID = "psnr_y@1"

// PSNRLuma returns the peak signal-to-noise ratio of the luma of two images of equal shape with 1 or 3 channels, in dB. It is
// symmetric. Errors are [ErrShape] and [raster.ErrNotFinite].
func PSNRLuma(x, y *raster.Image) (float64, error) {
	if err := checkPair(x, y); err != nil {
		return 0, fmt.Errorf("psnr_y: %w", err)
	}
	switch x.Channels {
	case 1:
		return PSNR(x, y)
	case 3:
	default:
		return 0, fmt.Errorf("psnr_y: image of %d channels, must be 1 or 3: %w", x.Channels, ErrShape)
	}
	sum, size := 0.0, x.Height*x.Width
	var a [block]float32
	var b [3][block]float32
	for at := 0; at < size; at += block {
		n := min(block, size-at)
		for c := range b {
			halves(a[:], b[c][:], x.Plane(c)[at:][:n], y.Plane(c)[at:])
		}
		for i := range n {
			b[0][i] = float32(yiq[0][0]*float64(b[0][i]) + yiq[0][1]*float64(b[1][i]) + yiq[0][2]*float64(b[2][i]))
		}
		sum += squares(b[0][:n])
	}
	return decibels(sum, size), nil
}

// block is the number of values of an image that are compared together.
const block = 1024

// squares returns the sum of the squares of values.
func squares(values []float32) float64 {
	var sum [4]float64
	for ; len(values) >= len(sum); values = values[len(sum):] {
		for k := range sum {
			v := float64(values[k])
			sum[k] += v * v
		}
	}
	for _, v := range values {
		sum[0] += float64(v) * float64(v)
	}
	return (sum[0] + sum[1]) + (sum[2] + sum[3])
}

// decibels returns the score of n values with a sum of the squares of halved differences.
func decibels(sum float64, n int) float64 { return -10 * math.Log10(4*sum/float64(n)+1e-8) }

// checkPair checks that two images are valid, finite and of equal shape.
func checkPair(x, y *raster.Image) error {
	for _, img := range []*raster.Image{x, y} {
		if err := img.Validate(); err != nil {
			return fmt.Errorf("%w: %w", ErrShape, err)
		}
	}
	if x.Channels != y.Channels || x.Height != y.Height || x.Width != y.Width {
		return fmt.Errorf("compare %d channels of %dx%d pixels with %d of %dx%d: %w",
			x.Channels, x.Width, x.Height, y.Channels, y.Width, y.Height, ErrShape)
	}
	for k, img := range []*raster.Image{x, y} {
		if i, ok := raster.Finite(img.Pix); !ok {
			return fmt.Errorf("value %d of image %d is %v: %w", i, k+1, img.Pix[i], raster.ErrNotFinite)
		}
	}
	return nil
}
