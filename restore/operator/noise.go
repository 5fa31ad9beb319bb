package operator

import (
	"fmt"
	"math"

	"ddiff/internal/restore/noise"
)

// Noise is the noise of a measurement whose values are in [−1, 1] without it: that of N photons, and N(0, σ²) on top. An entry a of A(x) has
// the intensity p = max(0, (a+1)/2), and its measurement is
//
//	y = 2·n/N − 1 + N(0, σ²)  with a count n ~ Poisson(N·p)
//
// of mean a and variance σ² + 4·p/N. Without photons it is y = a + N(0, σ²), also for other ranges.
type Noise struct {
	// Sigma is σ, in units of y.
	Sigma float64
	// Photons is N, the mean count of a white entry, at most MaxPhotons. 0: no noise of photons.
	Photons float64
}

// MaxPhotons bounds [Noise.Photons]. Intensities above white are allowed for: A(x) may overshoot.
const MaxPhotons = 1e9

// CheckNoise returns ErrParam for noise of photons in a measurement that is no picture, and for a number of photons out of range.
func (o *Operator) CheckNoise(n Noise) error {
	switch {
	case !(n.Photons >= 0 && n.Photons <= MaxPhotons):
		return fmt.Errorf("task %s: %w photons: %v is out of range", o.Task, ErrParam, n.Photons)
	case n.Photons > 0 && (o.Own != nil || o.NotPicture):
		return fmt.Errorf("task %s: %w photons: its measurement is no picture from black at -1 to white at 1", o.Task, ErrParam)
	}
	return nil
}

// add turns A(x) into a measurement, in place.
func (n Noise) add(y []float32, key noise.Key) {
	e := make([]float32, len(y))
	noise.Normal(e, key, noise.Measurement, 0, n.Sigma)
	for i := range y {
		if n.Photons > 0 {
			count := noise.Poisson(n.Photons*intensity(y[i]), key, noise.Photons, uint32(i))
			y[i] = float32(2*count/n.Photons - 1)
		}
		y[i] += e[i]
	}
}

// intensity is p of an entry, from 0 for black and 1 for white.
func intensity(v float32) float64 { return max(0, (float64(v)+1)/2) }

// extremes are about the largest errors of m entries below black and above white.
func (n Noise) extremes(m int) (below, above float64) {
	const rounding = 1e-6
	log := 2 * math.Log(float64(m))
	below = n.Sigma*math.Sqrt(log) + rounding
	if n.Photons == 0 {
		return below, below
	}
	return below, math.Sqrt(n.variance(1+overshoot)*log) + 2*log/n.Photons + rounding
}

// Level is the standard deviation of the noise of a mid-grey entry, √(σ² + 2/N).
func (n Noise) Level() float64 { return math.Sqrt(n.variance(0.5)) }

// Variance is the mean variance of the noise of the measurement y: σ², plus 4/N times the mean intensity of y. Its expectation is the mean
// over the entries of A(x), unless A(x) is below black.
func (n Noise) Variance(y []float32) float64 {
	if n.Photons == 0 {
		return n.Sigma * n.Sigma
	}
	sum := 0.0
	for _, v := range y {
		sum += (float64(v) + 1) / 2
	}
	return n.variance(max(0, sum/float64(len(y))))
}

// Spread is the standard deviation of mean((y − A(x))²)/Variance(y) for the true image: √(2/m) for m entries without photons. With photons
// the squares have the variances 2v² + 4σ²/N² about the estimate of their v from the same entry.
func (n Noise) Spread(y []float32) float64 {
	m := float64(len(y))
	if n.Photons == 0 {
		return math.Sqrt(2 / m)
	}
	mean, sum, unit := n.Variance(y), 0.0, 4/(n.Photons*n.Photons)
	for _, e := range y {
		v := n.Sigma*n.Sigma + 2*(float64(e)+1)/n.Photons
		sum += 2*(v*v-unit*v) + unit*n.Sigma*n.Sigma
	}
	return math.Sqrt(max(0, sum)) / (m * mean)
}

// variance is that of an entry with intensity p.
func (n Noise) variance(p float64) float64 {
	if n.Photons == 0 {
		return n.Sigma * n.Sigma
	}
	return n.Sigma*n.Sigma + 4*p/n.Photons
}
