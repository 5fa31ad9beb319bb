package photograph

import (
	"math"

	"ddiff/internal/restore/raster"
	"ddiff/restore/operator"
)

// Long compares a kernel with one of half its length on a picture that it blurred. The power spectrum of the picture is that of a photograph, which falls as a power of the
// frequency, times that of the kernel, and white noise: a kernel that is too long has zeros where the picture has none. It returns how much larger the logarithm of the likelihood is of
// the shorter kernel, over the root of the number of frequencies; 0 for pictures that are too small.
func Long(y *raster.Image, kernel *operator.Draw) float64 {
	h, w := min(y.Height, mostTested), min(y.Width, mostTested)
	if len(kernel.Dims) != 2 || kernel.Dims[0] != kernel.Dims[1] || min(h, w) < max(leastSide, 4*kernel.Dims[0]) {
		return 0
	}
	picture, energy := windowedSpectrum(y, h, w)
	whole, half := windowed(spectrum(kernel, h, w), h, w, h, w), windowed(spectrum(kernel, 2*h, 2*w), 2*h, 2*w, h, w)
	var all [2][]frequency
	for i, c := range picture {
		f := math.Sqrt(frequency2(i, h, w))
		if f < lowest/float64(min(h, w)) || 2*(i%w) > w { // each value occurs twice
			continue
		}
		power := (real(c)*real(c) + imag(c)*imag(c)) / energy
		all[0] = append(all[0], frequency{f, power, whole[i]})
		all[1] = append(all[1], frequency{f, power, half[i]})
	}
	return (unlikelihood(all[0]) - unlikelihood(all[1])) / math.Sqrt(float64(len(all[0])))
}

// frequency is an entry of a power spectrum, and what a kernel leaves of it.
type frequency struct{ f, power, passed float64 }

// windowed returns what a kernel leaves of the power at the frequencies of h×w entries, where those of its transform, of height rows, are as far from each other, and the window of a picture mixes neighbours.
func windowed(kernel []complex128, height, width, h, w int) []float64 {
	power := func(y, x int) float64 {
		at := func(i, n, side int) int { return (((i+n)%n+n/2)%n - n/2 + side) % side }
		c := kernel[at(y, h, height)*width+at(x, w, width)]
		return real(c)*real(c) + imag(c)*imag(c)
	}
	out := make([]float64, h*w)
	weights := [3]float64{1. / 6, 2. / 3, 1. / 6} // of a cosine
	for i := range out {
		for k := range 9 {
			out[i] += weights[k/3] * weights[k%3] * power(i/w+k/3-1, i%w+k%3-1)
		}
	}
	return out
}

// unlikelihood is the smallest sum of log M + power/M of the models M = a·f^(−slope)·passed + noise.
func unlikelihood(all []frequency) float64 {
	const rings = 12
	var sums, entries [rings]float64 // from a tenth of the sampling rate on
	mean := 0.0
	for _, r := range all {
		mean += r.power / float64(len(all))
		if ring := int(math.Floor(6 * math.Log2(r.f/0.1))); ring >= 0 && ring < rings {
			sums[ring] += r.power
			entries[ring]++
		}
	}
	last := math.Inf(1)
	for ring, sum := range sums {
		if entries[ring] > 0 {
			last = min(last, sum/entries[ring])
		}
	}
	best, signal := math.Inf(1), make([]float64, len(all))
	for _, steep := range []float64{1.8, 2.1, 2.4, 2.7, 3} {
		total := 0.0
		for i, r := range all {
			signal[i] = math.Pow(r.f, -steep) * r.passed
			total += signal[i] / float64(len(all))
		}
		for _, share := range []float64{0.1, 0.3, 0.6, 0.8, 1, 1.2} {
			noise := max(leastPower, share*last)
			for step := -4.; step <= 4; step++ {
				amount, sum := math.Exp(step/2)*mean/total, 0.0
				for i, r := range all {
					m := amount*signal[i] + noise
					sum += math.Log(m) + r.power/m
				}
				best = min(best, sum)
			}
		}
	}
	return best
}
