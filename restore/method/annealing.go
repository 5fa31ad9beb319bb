package method

import (
	"fmt"
	"math"

	"ddiff/restore/onnx"
)

// polynomial returns n+1 noise levels from high to low: the seventh powers of an arithmetic sequence (Karras et al. 2022).
func polynomial(high, low float64, n int) []float64 {
	out := make([]float64, n+1)
	a, b := math.Pow(high, 1.0/7), math.Pow(low, 1.0/7)
	for i := range out {
		out[i] = math.Pow(a+float64(i)/float64(n)*(b-a), 7)
	}
	return out
}

// noiseLevel is √((1−ᾱ)/ᾱ), the noise of x_t/√ᾱ_t.
func noiseLevel(alpha float64) float64 { return math.Sqrt((1 - alpha) / alpha) }

// nearestTime returns the time whose noise level has the least ratio to sigma, of those before another time. Levels outside
// the schedule get its ends.
func nearestTime(s Schedule, sigma float64, before int) int {
	best, least := 0, math.Inf(1)
	for t, alpha := range s.AlphaBar[:before] {
		if d := math.Abs(math.Log(noiseLevel(alpha) / sigma)); d < least {
			best, least = t, d
		}
	}
	return best
}

// annealed is one step of an annealing.
type annealed struct {
	time        int     // nearest to level
	level, next float64 // noise levels of the step and of the next one, 0 after the last
	start       float64 // factor of the state, which starts with standard deviation 1
	rate        float64 // step size η of the chain
	// The step solves the probability-flow ODE through these levels, one more than the times at which it evaluates the
	// network.
	levels []float64
	times  []int
}

// anneal plans the steps from noise level sigma_max towards sigma_min, which is left out. Each solves the ODE in ode_steps steps down to the
// level ode_end. No two steps have the same time: a level whose nearest time is taken gets the next lower one.
func anneal(s Schedule, set Settings) ([]annealed, error) {
	n, sub, high, low := set.Steps, int(set.Number("ode_steps")), set.Number("sigma_max"), set.Number("sigma_min")
	if low >= high {
		return nil, fmt.Errorf("%w sigma_min: %g is not below sigma_max, %g", ErrSetting, low, high)
	}
	out := make([]annealed, n)
	before := s.Steps()
	for i, level := range polynomial(high, low, n)[:n] {
		if before < 1 {
			return nil, fmt.Errorf("%w steps: the schedule has fewer than %d times between the noise levels %g and %g; use fewer, or a higher sigma_min or sigma_max", ErrSetting, n, high, low)
		}
		a := annealed{time: nearestTime(s, level, before), level: level, levels: polynomial(level, min(set.Number("ode_end"), level), sub), start: 1}
		a.rate = set.Number("lr") * (1 + float64(i)/float64(n+1)*(set.Number("lr_ratio")-1))
		before = a.time
		for _, l := range a.levels[:sub] {
			a.times = append(a.times, nearestTime(s, l, s.Steps()))
		}
		a.times[0] = a.time
		if i > 0 {
			out[i-1].next = level
		} else {
			a.start = level
		}
		out[i] = a
	}
	return out, nil
}

// step returns the numbers that flow and all chains read.
func (a annealed) step() Step {
	lists := map[string][]float64{}
	for k, l := range a.levels[:len(a.times)] {
		lists["level"] = append(lists["level"], l)
		lists["input"] = append(lists["input"], 1/math.Sqrt(1+l*l))
		lists["kept"] = append(lists["kept"], a.levels[k+1]/l)
	}
	return Step{
		Time: a.time, Times: map[string][]int{"ode": a.times}, Lists: lists,
		Scalars: map[string]float64{"sigma": a.level, "start": a.start, "root": math.Sqrt(a.rate)},
		Std:     map[string]float64{"noise": a.next},
	}
}

// flow solves the probability-flow ODE from v by Euler's method in sub steps, through the levels of an annealed step.
func (b *Builder) flow(v onnx.Value, sub int) onnx.Value {
	for k := range sub {
		i := b.Index(k)
		clean := denoise(b, v, b.Moment("ode", i), b.Listed("level", i), b.Listed("input", i))
		v = b.Add(clean, b.Mul(b.Minus(v, clean), b.Listed("kept", i)))
	}
	return v
}

// denoise returns the prior's clean image or latent of v = x + level·ε, not clipped. input is 1/√(1+level²), which brings v to the scale
// of x_t; the time is the schedule's nearest to the level.
func denoise(b *Builder, v onnx.Value, at Moment, level, input onnx.Value) onnx.Value {
	scaled := b.Mul(v, input)
	clean := b.unclipped(scaled, at)
	return b.Minus(v, b.Mul(b.NoiseOf(scaled, clean, at), level))
}
