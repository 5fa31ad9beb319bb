package drawfile

import (
	"math"

	"gonum.org/v1/gonum/dsp/fourier"

	"ddiff/restore/operator"
	"ddiff/restore/raster"
)

// TurnedRatio is the ratio of [Turned] above which a kernel is probably turned: of 108 right kernels on 18 pictures with noise of 0.01 and 0.05 none reached it, and of
// 108 turned ones 66 did.
const TurnedRatio = 1.03

const (
	// mostTested is the largest side of the part of a picture on which orientations are compared.
	mostTested = 512
	// leastNoise is the least noise-to-signal ratio of the comparison.
	leastNoise = 1e-3
)

// Turned compares a kernel with the kernel turned by 180° on a picture that it blurred: many programs convolve, with the turned one. It returns how much
// larger the sum of the square roots of the differences of neighbouring pixels is after a Wiener deconvolution with the kernel than after one with the
// turned kernel. Both have the same sum of squares, and the wrong one has echoes, which fill what is flat in a photograph: a ratio above [TurnedRatio]
// speaks for the turned one. sigma is the noise in units of the picture's [−1, 1]. It
// returns 1 for a kernel without an orientation, and for pictures that are too small.
func Turned(y *raster.Image, kernel *operator.Draw, sigma float64) float64 {
	if len(kernel.Dims) != 2 || kernel.Dims[0] != kernel.Dims[1] {
		return 1
	}
	k := kernel.Dims[0]
	h, w := min(y.Height, mostTested), min(y.Width, mostTested)
	margin := k
	if h < 4*margin || w < 4*margin || symmetric(kernel) {
		return 1
	}
	picture, filter := make([]complex128, h*w), make([]complex128, h*w)
	top, left := (y.Height-h)/2, (y.Width-w)/2
	mean := 0.0
	for i := range picture {
		v := 0.0
		for c := range y.Channels {
			v += float64(y.Plane(c)[(top+i/w)*y.Width+left+i%w]) / float64(y.Channels)
		}
		picture[i] = complex(v, 0)
		mean += v / float64(h*w)
	}
	energy := 0.0
	for i, v := range picture {
		d := real(v) - mean
		energy += d * d / float64(h*w)
		picture[i] = complex(d*taper(i/w, h, margin)*taper(i%w, w, margin), 0)
	}
	for i, v := range kernel.Data {
		filter[(i/k-k/2+h)%h*w+(i%k-k/2+w)%w] += complex(float64(v), 0)
	}
	transform(picture, h, w, false)
	transform(filter, h, w, false)
	ratio := max(leastNoise, sigma*sigma/max(energy, 1e-12))
	given, turned := make([]complex128, h*w), make([]complex128, h*w)
	for i, f := range filter { // y correlates: its spectrum is that of the image times the conjugate
		size := real(f)*real(f) + imag(f)*imag(f) + ratio
		given[i] = picture[i] * f / complex(size, 0)
		turned[i] = picture[i] * complex(real(f), -imag(f)) / complex(size, 0)
	}
	transform(given, h, w, true)
	transform(turned, h, w, true)
	return variation(given, h, w, margin) / variation(turned, h, w, margin)
}

// symmetric reports whether a kernel has no orientation.
func symmetric(d *operator.Draw) bool {
	off, sum := 0.0, 0.0
	for i, v := range d.Data {
		off += math.Abs(float64(v - d.Data[len(d.Data)-1-i]))
		sum += math.Abs(float64(v))
	}
	const noticeable = 0.1
	return off <= noticeable*sum
}

// taper falls to 0 at the borders of n elements.
func taper(i, n, margin int) float64 {
	d := min(i, n-1-i)
	if d >= margin {
		return 1
	}
	return 0.5 - 0.5*math.Cos(math.Pi*(float64(d)+0.5)/float64(margin))
}

// variation is the sum of the square roots of differences of neighbours inside the margin.
func variation(v []complex128, h, w, margin int) (sum float64) {
	for y := margin; y < h-margin; y++ {
		for x := margin; x < w-margin; x++ {
			i := y*w + x
			sum += math.Sqrt(math.Abs(real(v[i+1])-real(v[i]))) + math.Sqrt(math.Abs(real(v[i+w])-real(v[i])))
		}
	}
	return sum
}

// transform replaces values by their discrete Fourier transform, or back, up to a factor.
func transform(v []complex128, h, w int, back bool) {
	across, down := fourier.NewCmplxFFT(w), fourier.NewCmplxFFT(h)
	run := across.Coefficients
	if back {
		run = across.Sequence
	}
	for y := range h {
		row := v[y*w:][:w]
		copy(row, run(nil, row))
	}
	if run = down.Coefficients; back {
		run = down.Sequence
	}
	column := make([]complex128, h)
	for x := range w {
		for y := range h {
			column[y] = v[y*w+x]
		}
		for y, c := range run(nil, column) {
			v[y*w+x] = c
		}
	}
}
