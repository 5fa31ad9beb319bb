package photograph

import (
	"math"
	"math/cmplx"

	"gonum.org/v1/gonum/dsp/fourier"

	"ddiff/internal/restore/raster"
	"ddiff/restore/operator"
)

// LeastTurned is the value of [Turned] from which a kernel is turned, and minus that of one which is not. Between them the picture does not tell. Little noise tells more, and a
// turned kernel costs more there.
func LeastTurned(sigma float64) float64 {
	const little = 0.03
	if sigma < little {
		return 0.6
	}
	return 1.5
}

// Turned compares a kernel with the kernel turned by 180° on a picture that it blurred: many programs convolve, with the turned one. A Wiener deconvolution with either has
// the same power spectrum, and the wrong one has echoes, which fill what is flat in a photograph. It returns the mean difference over 16 parts of the picture of how much is not
// flat, in its standard errors: positive if the turned kernel suits the picture better. sigma is the noise in units of the picture's [−1, 1]. It
// returns −∞ for a kernel without an orientation, and 0 for pictures that are too small.
func Turned(y *raster.Image, kernel *operator.Draw, sigma float64) float64 {
	if len(kernel.Dims) != 2 || kernel.Dims[0] != kernel.Dims[1] || symmetric(kernel) {
		return math.Inf(-1)
	}
	k := kernel.Dims[0]
	h, w := min(y.Height, mostTested), min(y.Width, mostTested)
	margin := k
	if h < 4*margin || w < 4*margin {
		return 0
	}
	picture := brightness(y, h, w)
	mean, energy := 0.0, 0.0
	for _, v := range picture {
		mean += real(v) / float64(h*w)
	}
	for i, v := range picture {
		d := real(v) - mean
		energy += d * d
		picture[i] = complex(d*taper(i/w, h, margin)*taper(i%w, w, margin), 0)
	}
	filter := spectrum(kernel, h, w)
	odd, whole := 0.0, 0.0
	right, below := centre(kernel) // about which the kernel is turned, so that the pictures lie on each other
	for i, f := range filter {
		f *= cmplx.Rect(1, 2*math.Pi*(right*signed(i%w, w)+below*signed(i/w, h)))
		filter[i] = f
		odd += imag(f) * imag(f)
		whole += real(f)*real(f) + imag(f)*imag(f)
	}
	if odd <= hardlyOdd*whole {
		return math.Inf(-1)
	}
	transform(picture, h, w, false)
	falls := 0.0 // the sum of a power spectrum that falls with the square of the frequency, as those of photographs do
	for i := range filter {
		falls += 1 / max(frequency2(i, h, w), 1/float64(h*w))
	}
	ratio := max(sigma, leastNoise) * max(sigma, leastNoise) / float64(y.Channels) * falls / max(energy, 1e-12)
	given, turned := make([]complex128, h*w), make([]complex128, h*w)
	for i, f := range filter { // y correlates: its spectrum is that of the image times the conjugate
		size := real(f)*real(f) + imag(f)*imag(f) + ratio*frequency2(i, h, w) + 1e-12
		given[i] = picture[i] * f / complex(size, 0)
		turned[i] = picture[i] * complex(real(f), -imag(f)) / complex(size, 0)
	}
	transform(given, h, w, true)
	transform(turned, h, w, true)
	unit := 0.0
	for i := range given[:len(given)-1] {
		unit += flat * (math.Abs(real(given[i+1]-given[i])) + math.Abs(real(turned[i+1]-turned[i]))) / 2 / float64(h*w)
	}
	var total, sum, squares float64
	const n = turnedParts * turnedParts
	at := func(part, side int) int { return margin + part*(side-2*margin)/turnedParts }
	for y := range turnedParts {
		for x := range turnedParts {
			a, b := variation(given, unit, w, at(y, h), at(x, w), at(y+1, h), at(x+1, w)), variation(turned, unit, w, at(y, h), at(x, w), at(y+1, h), at(x+1, w))
			total += (a + b) / 2
			sum += a - b
			squares += (a - b) * (a - b)
		}
	}
	deviation := math.Sqrt(max(0, squares-sum*sum/n) / (n - 1))
	return sum / n / (deviation/math.Sqrt(n) + hardlyTurned*total/n)
}

// brightness is the mean of the channels in the middle of a picture.
func brightness(y *raster.Image, h, w int) []complex128 {
	out := make([]complex128, h*w)
	top, left := (y.Height-h)/2, (y.Width-w)/2
	for i := range out {
		v := 0.0
		for c := range y.Channels {
			v += float64(y.Plane(c)[(top+i/w)*y.Width+left+i%w]) / float64(y.Channels)
		}
		out[i] = complex(v, 0)
	}
	return out
}

// spectrum is the transform of a square kernel about its centre.
func spectrum(kernel *operator.Draw, h, w int) []complex128 {
	k, out := kernel.Dims[0], make([]complex128, h*w)
	for i, v := range kernel.Data {
		out[(i/k-k/2+h)%h*w+(i%k-k/2+w)%w] += complex(float64(v), 0)
	}
	transform(out, h, w, false)
	return out
}

// frequency2 is the square of the frequency of an entry of a transform, in cycles per pixel.
func frequency2(i, h, w int) float64 {
	y, x := signed(i/w, h), signed(i%w, w)
	return y*y + x*x
}

// signed is the frequency of entry i of n.
func signed(i, n int) float64 {
	if 2*i >= n {
		i -= n
	}
	return float64(i) / float64(n)
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

// variation is the sum of log(1 + d²) of the differences d of neighbours in a unit, in a part of values of width w.
func variation(v []complex128, unit float64, w, top, left, bottom, right int) (sum float64) {
	for y := top; y < bottom; y++ {
		for x := left; x < right; x++ {
			i := y*w + x
			across, down := real(v[i+1]-v[i])/unit, real(v[i+w]-v[i])/unit
			sum += math.Log((1 + across*across) * (1 + down*down))
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
