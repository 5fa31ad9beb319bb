package solver

import (
	"fmt"
	"math"

	"ddiff/restore/operator"
	"ddiff/restore/prior"
)

// Respace picks n of the time indices 0..total−1, evenly from first to last, in the order of
// the reverse process (descending): round(i·(total−1)/(n−1)), halves to even, as
// guided-diffusion does.
func Respace(total, n int) ([]int, error) {
	if n < 2 || n > total {
		return nil, fmt.Errorf("%w steps: %d is outside 2..%d, the steps of the prior's schedule", ErrConfig, n, total)
	}
	out := make([]int, n)
	for i := range out {
		out[n-1-i] = int(math.RoundToEven(float64(i) * float64(total-1) / float64(n-1)))
	}
	return out, nil
}

// step holds what one step needs to know.
type step struct {
	t        int
	alpha    float64 // ᾱ_t
	next     float64 // ᾱ_s, 1 after the last step
	sigma    float64 // σ_t
	gamma    float64 // γ_t, image size included
	noiseStd float64 // σ_t, or 0 where ε is left out
}

// plan lays out all steps of a run.
func plan(c Config, s prior.Schedule, shape operator.Shape) ([]step, error) {
	times, err := Respace(s.Steps(), c.Steps)
	if err != nil {
		return nil, err
	}
	scale := 1.0
	if c.Gradient == GradientNorm {
		scale = math.Sqrt(float64(shape.Height*shape.Width)) / 256
	}
	out := make([]step, len(times))
	for i, t := range times {
		st := step{t: t, alpha: s.AlphaBar[t], next: 1}
		if i+1 < len(times) {
			st.next = s.AlphaBar[times[i+1]]
		}
		st.sigma = sigma(c.SigmaRule, st.alpha, st.next)
		factor := c.B
		if t > c.TGamma {
			factor = c.A
		}
		st.gamma = c.Gamma0 * factor * scale
		if t > c.T0 && c.Method.renoised() {
			st.noiseStd = st.sigma
		}
		out[i] = st
	}
	return out, nil
}

func sigma(rule string, alpha, next float64) float64 {
	if rule == SigmaFull {
		return math.Sqrt(1 - next)
	}
	return math.Sqrt((1-next)/(1-alpha)) * math.Sqrt(1-alpha/next)
}

// The scalars of a step as the graph takes them.
const (
	zOfX     = iota // z = zOfX·x_t + zOfPred·prediction
	zOfPred         //
	stepSize        // γ_t
	nextOfX         // x_s = nextOfX·x + nextOfU·u + nextOfXt·x_t + noise
	nextOfU         //
	nextOfXt        //
	scalars
)

// coefficients fills one row of the scalar table.
func (st step) coefficients(m Method, p prior.Prediction) [scalars]float32 {
	a, b := math.Sqrt(st.alpha), math.Sqrt(1-st.alpha)
	var c [scalars]float64
	switch p {
	case prior.Epsilon:
		c[zOfX], c[zOfPred] = 1/a, -b/a
	case prior.Sample:
		c[zOfX], c[zOfPred] = 0, 1
	case prior.Velocity:
		c[zOfX], c[zOfPred] = a, -b
	}
	c[stepSize] = st.gamma
	if m.renoised() {
		k := math.Sqrt(max(0, 1-st.next-st.sigma*st.sigma))
		c[nextOfX] = math.Sqrt(st.next) - k*a/b
		c[nextOfU] = math.Sqrt(st.next)
		c[nextOfXt] = k / b
	} else {
		c[nextOfX] = 1
	}
	var out [scalars]float32
	for i, v := range c {
		out[i] = float32(v)
	}
	return out
}
