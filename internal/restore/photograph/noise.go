package photograph

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/stat/distuv"
)

// Errors of an estimate.
var (
	// ErrFewPatches: the picture is too small, or too much of it is unobserved or clipped.
	ErrFewPatches = errors.New("too few usable patches")
	// ErrNotFinite: the picture has a value that is NaN or infinite.
	ErrNotFinite = errors.New("a value is not finite")
)

// Noisy is a measurement with white noise.
type Noisy struct {
	Channels, Height, Width int
	// Pix has the values, channel by channel, row by row. −1 is black and 1 is white: these values are clipped.
	Pix []float32
	// Observed is not zero where a pixel is known, Height×Width. Nil: everywhere.
	Observed []float32
	// Step is the distance of neighbouring levels in Pix: 2/255 in a file of 8 bits. 0: the values are not rounded.
	Step float64
}

// Mosaic returns the samples of a Bayer mosaic, the first channel of p, as a picture of half the sides with four channels: neighbouring
// samples have different colours. A last row or column without a partner is left out.
func (p Noisy) Mosaic() Noisy {
	out := Noisy{Channels: 4, Height: p.Height / 2, Width: p.Width / 2, Step: p.Step}
	for c := range out.Channels {
		for y := range out.Height {
			for x := range out.Width {
				out.Pix = append(out.Pix, p.Pix[(2*y+c/2)*p.Width+2*x+c%2])
			}
		}
	}
	return out
}

// EstimateNoise returns the standard deviation of the noise in units of Pix, with three significant digits. It is at least that of
// rounding to Step. Channels that are all equal count once. Errors wrap ErrFewPatches and ErrNotFinite.
func EstimateNoise(p Noisy) (float64, error) {
	patches, err := p.patches()
	if err != nil {
		return 0, err
	}
	variance, err := patches.noise(patches.places)
	if err != nil {
		return 0, err
	}
	return roundTo(max(math.Sqrt(variance), p.Step/math.Sqrt(12)), digits), nil
}

// patches checks a picture and returns its patches.
func (p Noisy) patches() (*patches, error) {
	if n := p.Height * p.Width; p.Channels < 1 || p.Height < 1 || p.Width < 1 || len(p.Pix) != p.Channels*n || p.Observed != nil && len(p.Observed) != n {
		return nil, fmt.Errorf("estimate the noise: %d values and %d observed pixels do not suit %d×%d×%d", len(p.Pix), len(p.Observed), p.Channels, p.Height, p.Width)
	}
	if slices.ContainsFunc(p.Pix, func(v float32) bool { return math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) }) {
		return nil, fmt.Errorf("estimate the noise: %w", ErrNotFinite)
	}
	return newPatches(p.distinct()), nil
}

// noise returns the variance of the noise in those of some patches that have little texture.
func (s *patches) noise(places []place) (float64, error) {
	least := s.least()
	if n := len(places); n < least {
		return 0, fmt.Errorf("estimate the noise: %w: %d of %d×%d pixels without holes and clipped values, at least %d are needed", ErrFewPatches, n, side, side, least)
	}
	all := s.moments(places)
	variance, err := all.variance()
	limit := gradientLimit(s.Channels)
	for range rounds {
		flat, others := divide(places, limit*variance)
		if err != nil || len(flat) < least {
			break
		}
		var m moments // of the fewer ones
		if len(flat) < len(others) {
			m = s.moments(flat)
		} else {
			m = all.minus(s.moments(others))
		}
		last := variance
		if variance, err = m.variance(); math.Abs(variance-last) <= settled*variance {
			break
		}
	}
	if err != nil {
		return 0, fmt.Errorf("estimate the noise: %w", err)
	}
	return variance, nil
}

// least is the least number of patches for an estimate.
func (s *patches) least() int { return perEntry * s.entries }

// distinct returns the picture with one channel if all channels are equal: their noise is the same.
func (p Noisy) distinct() Noisy {
	n := p.Height * p.Width
	for c := 1; c < p.Channels; c++ {
		if !slices.Equal(p.Pix[:n], p.Pix[c*n:(c+1)*n]) {
			return p
		}
	}
	p.Channels, p.Pix = 1, p.Pix[:n]
	return p
}

// gradientLimit returns the energy of the gradients of a patch, over the variance of the noise, that pure noise rarely exceeds.
// The energy of noise has about a gamma distribution, with the sum and the number of the eigenvalues of the gradient's quadratic form: 8 and 12
// for 4×4 pixels of a channel. The quantile of grey pictures is lower: the eigenvalues of their small patches show less of the
// texture that a selection has left.
func gradientLimit(channels int) float64 {
	const sum, rank = 8, 12
	quantile := 1 - 1e-6
	if channels == 1 {
		quantile = 0.99
	}
	return distuv.Gamma{Alpha: rank / 2 * float64(channels), Beta: rank / (2.0 * sum)}.Quantile(quantile)
}

// roundTo returns x with a number of significant digits.
func roundTo(x float64, digits int) float64 {
	x, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', digits, 64), 64)
	if err != nil {
		panic("photograph: a formatted number: " + err.Error())
	}
	return x
}
