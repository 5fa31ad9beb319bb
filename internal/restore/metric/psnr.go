package metric

import (
	"fmt"
	"math"

	"ddiff/internal/restore/raster"
)

// Version 1: both images clipped to [-1, 1] and mapped to [0, 1], all channels together,
// -10 log10(mse + 1e-8), in dB. The constant is piq's; it limits the score to 80 dB, the score of identical images.
func psnr() Metric {
	return Metric{Name: NamePSNR, Version: "1", Title: "PSNR", Unit: "dB", Decimals: 2, Better: Higher, Main: true, Degraded: true, Compare: comparePSNR}
}

// PSNR returns the peak signal-to-noise ratio of two images of equal shape, in dB. Errors are those of [Check].
func PSNR(x, y *raster.Image) (float64, error) {
	if err := Check(x, y); err != nil {
		return 0, fmt.Errorf("psnr: %w", err)
	}
	return comparePSNR(x, y)
}

// comparePSNR returns the peak signal-to-noise ratio of two images, in dB. It is symmetric.
func comparePSNR(x, y *raster.Image) (float64, error) {
	return decibels(distance(x.Pix, y.Pix, new([2][block]float32)), len(x.Pix)), nil
}

// distance returns the sum of the squares of halved differences of values that are clipped to [-1, 1] and mapped to [0, 1].
func distance(x, y []float32, scratch *[2][block]float32) float64 {
	sum := 0.0
	a, b := scratch[0][:], scratch[1][:]
	for at := 0; at < len(x); at += block {
		n := min(block, len(x)-at)
		halves(a, b, x[at:][:n], y[at:])
		sum += squares(b[:n], 0)
	}
	return sum
}

// block is the number of values of an image that are compared together.
const block = 1024

// squares returns the sum of the squares of the differences of values and their mean.
func squares(values []float32, mean float64) float64 {
	sums, n := squaresFast(values, mean)
	a, b, c, d := sums[0], sums[1], sums[2], sums[3] // in registers, which an array is not
	values = values[n:]
	for ; len(values) >= 4; values = values[4:] {
		p, q, r, s := float64(values[0])-mean, float64(values[1])-mean, float64(values[2])-mean, float64(values[3])-mean
		a, b, c, d = a+p*p, b+q*q, c+r*r, d+s*s
	}
	for _, v := range values {
		a += (float64(v) - mean) * (float64(v) - mean)
	}
	return (a + b) + (c + d)
}

// decibels returns the score of n values with a sum of the squares of halved differences.
func decibels(sum float64, n int) float64 { return -10 * math.Log10(4*sum/float64(n)+1e-8) }

// Check checks that two images are valid, finite and of equal shape, as every metric requires. Errors are [ErrShape] and [raster.ErrNotFinite].
func Check(x, y *raster.Image) error {
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
