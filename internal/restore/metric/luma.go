package metric

import (
	"fmt"

	"ddiff/internal/restore/raster"
)

// Version 1: as [PSNR], on 0.299 R + 0.587 G + 0.114 B.
func lumaPSNR() Metric {
	return Metric{Name: "psnr_y", Version: "1", Title: "luma PSNR", Unit: "dB", Decimals: 2, Better: Higher, Compare: compareLuma}
}

// compareLuma returns the peak signal-to-noise ratio of the luma of two images with 1 or 3 channels, in dB. It is symmetric.
func compareLuma(x, y *raster.Image) (float64, error) {
	if x.Channels != 1 && x.Channels != 3 {
		return 0, fmt.Errorf("psnr_y: image of %d channels, must be 1 or 3: %w", x.Channels, ErrUndefined)
	}
	if x.Channels == 1 {
		return comparePSNR(x, y)
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
		sum += squares(b[0][:n], 0)
	}
	return decibels(sum, size), nil
}
