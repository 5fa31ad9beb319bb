package metric

import (
	"math"
	"slices"

	"ddiff/internal/restore/raster"
)

// Version 1: 10 log10((e(restored) + 1e-8)/(e(truth) + 1e-8)) in dB, where e is the gradient energy: the mean over the samples of all channels of the squared
// differences to the right and the lower neighbour, on images clipped to [-1, 1] and mapped to [0, 1].
func sharpness() Metric {
	return Metric{Name: NameSharpness, Version: "1", Title: "sharpness", Unit: "dB", Decimals: 2, Better: CloserToZero, Main: true, Compare: compareSharpness}
}

// compareSharpness returns the gradient energy of a restored image over that of the truth, in dB: negative for a smoother image, positive for one with more
// detail or noise.
func compareSharpness(truth, restored *raster.Image) (float64, error) {
	return 10 * math.Log10((gradientEnergy(restored)+1e-8)/(gradientEnergy(truth)+1e-8)), nil
}

// gradientEnergy returns the mean squared difference of neighbouring samples, in both directions together.
func gradientEnergy(img *raster.Image) float64 {
	sum, width, scratch := 0.0, img.Width, new([2][block]float32)
	for c := range img.Channels {
		plane := img.Plane(c)
		sum += distance(plane[:len(plane)-width], plane[width:], scratch)
		for row := range slices.Chunk(plane, width) {
			sum += distance(row[:width-1], row[1:], scratch)
		}
	}
	return 4 * sum / float64(len(img.Pix))
}
