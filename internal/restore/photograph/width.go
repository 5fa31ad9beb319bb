package photograph

import (
	"errors"
	"fmt"
	"math"

	"ddiff/internal/restore/raster"
)

// BlurShape is a kind of blur that is the same in all directions.
type BlurShape string

const (
	// Gaussian is a Gaussian blur, whose width is its standard deviation.
	Gaussian BlurShape = "gaussian"
	// Disk is the blur of a lens out of focus, whose width is the radius of a disk.
	Disk BlurShape = "disk"
)

// power is the part of the power at a frequency, in cycles per pixel, that a blur leaves.
func (s BlurShape) power(frequency, width float64) float64 {
	x := 2 * math.Pi * frequency * width
	switch {
	case s == Gaussian:
		return math.Exp(-x * x)
	case x < 1e-6:
		return 1
	}
	k := 2 * math.J1(x) / x
	return k * k
}

// ErrNoWidth: a picture does not tell the width of its blur.
var ErrNoWidth = errors.New("the picture does not tell the width of a blur")

// Width is an estimate of the blur of a picture, in its pixels.
type Width struct {
	Pixels    float64
	Low, High float64 // the range of widths that explain the spectrum about as well; it has no stated level
	Misfit    float64 // to compare shapes on one picture: the smaller one fits better
}

// EstimateWidth finds the width of a blur for which the picture without it is most plausible: its power spectrum then falls as a power of the frequency, as those of photographs do, and what
// the blur leaves of it and white noise explain the spectrum of the picture. quality is that of a file with lossy compression, 100 for others: frequencies that compression
// erased do not count. It looks at the middle 512 pixels at most. Errors wrap ErrNoWidth.
func EstimateWidth(y *raster.Image, shape BlurShape, quality float64) (Width, error) {
	widest := widestShare * float64(min(y.Height, y.Width, mostTested))
	found, err := estimate(y, shape.power, quality, narrowest, widest)
	if err == nil && found.High > widest {
		err = fmt.Errorf("%w: it is blurred by more than %.2g pixels, or has no details; reduce it first", ErrNoWidth, widest/(1+leastError))
	}
	return found, err
}

// estimate finds the width of a blur, of which power is the part that it leaves.
func estimate(y *raster.Image, power func(frequency, width float64) float64, quality, smallest, largest float64) (Width, error) {
	if min(y.Height, y.Width) < leastSide {
		return Width{}, fmt.Errorf("%w: it has %d×%d pixels, at least %d×%d are needed", ErrNoWidth, y.Width, y.Height, leastSide, leastSide)
	}
	all := uncompressed(annuli(y), quality)
	if len(all) < fewestAnnuli {
		return Width{}, fmt.Errorf("%w: it is flat, or its compression left too few details", ErrNoWidth)
	}
	best, misfits := Width{Misfit: math.Inf(1)}, map[float64]float64{}
	try := func(width float64) {
		m := misfit(all, func(f float64) float64 { return power(f, width) })
		if misfits[width] = m; m < best.Misfit {
			best.Pixels, best.Misfit = width, m
		}
	}
	for w := smallest; w <= largest; w *= coarseStep {
		try(w)
	}
	for w, end := best.Pixels/coarseStep, best.Pixels*coarseStep; w <= end; w *= fineStep {
		try(w)
	}
	best.Low, best.High = best.Pixels/(1+leastError), best.Pixels*(1+leastError)
	// Deviations of spectra from the model count as noise of it, with two deviations.
	limit := best.Misfit + 4*max(1, best.Misfit/float64(len(all)-3))
	for w, m := range misfits {
		if m <= limit {
			best.Low, best.High = min(best.Low, w), max(best.High, w)
		}
	}
	return best, nil
}

// annulus is a part of a power spectrum: a range of frequencies in all directions.
type annulus struct {
	frequency, power float64 // in cycles per pixel; white noise has its variance as power
	variance         float64 // of the logarithm of the power
}

// windowedSpectrum is the transform of the brightness in the middle of a picture, without its mean and in a window of the given energy.
func windowedSpectrum(y *raster.Image, h, w int) (v []complex128, energy float64) {
	v = brightness(y, h, w)
	window := func(i int) float64 { return taper(i/w, h, h/2) * taper(i%w, w, w/2) }
	mean, weights := 0.0, 0.0
	for i, s := range v {
		mean += real(s) * window(i)
		weights += window(i)
		energy += window(i) * window(i)
	}
	for i := range v {
		v[i] = (v[i] - complex(mean/weights, 0)) * complex(window(i), 0)
	}
	transform(v, h, w, false)
	return v, energy
}

// annuli returns the power spectrum of the brightness in the middle of a picture.
func annuli(y *raster.Image) (full []annulus) {
	h, w := min(y.Height, mostTested), min(y.Width, mostTested)
	v, energy := windowedSpectrum(y, h, w)
	first := lowest / float64(min(h, w))
	out := make([]struct{ frequency, power, entries float64 }, int(perOctave*math.Log2(0.5/first))+1)
	for i, c := range v {
		fy, fx := float64(i/w)/float64(h), float64(i%w)/float64(w)
		f := math.Hypot(min(fy, 1-fy), min(fx, 1-fx))
		if f < first || f >= 0.5 {
			continue
		}
		r := &out[int(perOctave*math.Log2(f/first))]
		r.entries++
		r.frequency += math.Log(f)
		r.power += (real(c)*real(c) + imag(c)*imag(c)) / energy
	}
	for _, r := range out {
		if r.power > leastPower*r.entries {
			full = append(full, annulus{math.Exp(r.frequency / r.entries), r.power / r.entries, 2/r.entries + scatter*scatter}) // each value occurs twice
		}
	}
	return full
}

// uncompressed returns the annuli below the frequency from which compression erases coefficients.
func uncompressed(all []annulus, quality float64) []annulus {
	if quality >= 100 {
		return all
	}
	// The steps of JPEG's table of brightness are about 20 levels at quality 50; what is smaller than half a step becomes 0.
	step := 20 * (2 - quality/50)
	if quality < 50 {
		step = 20 * 50 / max(1, quality)
	}
	erased := step / 255 // half a step, where white and black have a distance of 2
	for i, r := range all {
		if r.power < erased*erased {
			return all[:i]
		}
	}
	return all
}

// misfit is the smallest sum of squares of the logarithms of powers minus those of the model a·f^(−slope)·|K(f)|² + noise, in units of their variances.
func misfit(all []annulus, power func(frequency float64) float64) float64 {
	last := math.Inf(1)
	for _, r := range all {
		last = min(last, r.power)
	}
	best := math.Inf(1)
	const steps = 0.5 // of the deviation
	passed, steeper := make([]float64, len(all)), make([]float64, len(all))
	for i, r := range all {
		passed[i], steeper[i] = power(r.frequency)*math.Pow(r.frequency, -slope+(3+steps)*slopes), math.Pow(r.frequency, -steps*slopes)
	}
	for deviation := -3.; deviation <= 3; deviation += steps {
		for i, f := range steeper {
			passed[i] *= f
		}
		for _, share := range []float64{0.02, 0.3, 0.7, 0.9, 1, 1.1} {
			noise := share * last
			amount := all[0].power / passed[0]
			for range 6 { // of Newton's method, of whose steps the last one is not made
				up, down, sum := 0.0, 0.0, deviation*deviation
				for i, r := range all {
					signal := amount * passed[i]
					part, off := signal/(signal+noise), math.Log(r.power/(signal+noise))
					up += part * off / r.variance
					down += part * part / r.variance
					sum += off * off / r.variance
				}
				best = min(best, sum)
				step := max(-2, min(2, up/down))
				if math.Abs(step) < 1e-4 {
					break
				}
				amount *= math.Exp(step)
			}
		}
	}
	return best
}
