package photograph

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// EstimateCorrelated returns the level of noise that neighbouring pixels share, as after demosaicing, enlarging or smoothing: that of white noise that is as strong in coarse
// details, with two significant digits. Estimate finds the weak noise of the fine details instead. Two differences of the channels, which have little content, are measured in the quietest
// blocks of a cosine transform. The noise is correlated where their level falls from middle to fine frequencies, and that of the brightness is hardly higher, as of
// channels with independent noise. Elsewhere, for one noise in all channels, and in pictures without three different channels, the level is 0. Observed is not used: holes are
// content.
func EstimateCorrelated(p Noisy) float64 {
	if p = p.distinct(); p.Channels != 3 {
		return 0
	}
	a, b, c := math.Sqrt(1./2), math.Sqrt(1./3), math.Sqrt(1./6)
	colours := p.spectra([]float64{a, 0, -a}, []float64{c, -2 * c, c})
	if len(colours) < 2*fewestBlocks {
		return 0
	}
	colour := quiet(colours, 2)
	if colour[0] < leastCorrelated || colour[1] < max(steepest*colour[0], leastFall*colour[bands]) {
		return 0
	}
	if grey := quiet(p.spectra([]float64{b, b, b}), 1); min(grey[1]/colour[1], grey[2]/colour[2]) > mostBright {
		return 0
	}
	return roundTo(colour[0], digitsCompressed)
}

// quiet returns the levels of the noise in the bands, and in all finer frequencies, of blocks that have each a number of spectra in turn.
func quiet(spectra []*square, each int) (out [bands + 1]float64) {
	var energies [bands + 1][]float64
	var entries [bands + 1]int
	for i := 0; i < len(spectra); i += each {
		var sums [bands + 1]float64
		entries = [bands + 1]int{}
		for _, v := range spectra[i : i+each] {
			for band, coefficients := range split(v) {
				entries[band] += len(coefficients)
				for _, c := range coefficients {
					sums[band] += c * c
				}
			}
		}
		for band, sum := range sums {
			energies[band] = append(energies[band], sum)
		}
	}
	for band, e := range energies {
		slices.Sort(e)
		out[band] = math.Sqrt(e[int(quietest*float64(len(e)))] / distuv.ChiSquared{K: float64(entries[band])}.Quantile(quietest))
	}
	return out
}
