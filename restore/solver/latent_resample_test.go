package solver

import (
	"math"

	"ddiff/restore/method"
)

func referenceReSample(m latentModel, s method.Settings, z []float64) []float64 {
	times, alpha := m.times(s.Steps)
	estimate := func(z []float64, t int, a float64) []float64 {
		noise := 1 - a
		if s.Word("estimate") == "tweedie" {
			noise = math.Sqrt(noise)
		}
		return sum(1/math.Sqrt(a), z, -noise/math.Sqrt(a), m.eps(z, t))
	}
	ad := product(m.a, m.decode)
	interval, third := int(s.Number("interval")), s.Steps/3
	for i, t := range times {
		a, next, rest := alpha[i], alpha[i+1], s.Steps-1-i
		loss := func(z []float64) float64 { return length(m.residual(apply(m.decode, estimate(z, t, a)))) }
		z = sum(math.Sqrt(next), m.clean(z, t), math.Sqrt(1-next), m.eps(z, t), -s.Number("guidance")*a, slope(loss, z))
		if rest == 0 {
			return m.optimum(s, "latent", ad, z)
		}
		if rest > s.Steps-third || rest%interval != 0 {
			continue
		}
		ahead, e := z, z
		for k := i; k < i+int(s.Number("travel")); k++ {
			noise := m.eps(ahead, times[k+1])
			e = estimate(ahead, times[k+1], alpha[k])
			c := sum(1/math.Sqrt(alpha[k]), ahead, -math.Sqrt(1-alpha[k])/math.Sqrt(alpha[k]), noise)
			ahead = sum(math.Sqrt(alpha[k+1]), c, math.Sqrt(1-alpha[k+1]), noise)
		}
		if rest >= third {
			e = apply(m.encode, m.optimum(s, "pixel", m.a, apply(m.decode, e)))
		} else {
			e = m.optimum(s, "latent", ad, e)
		}
		kappa := s.Number("resample_scale") * (1 - next) / (1 - a) * (1 - a/next)
		z = sum(kappa*math.Sqrt(next)/(kappa+1-next), e, (1-next)/(kappa+1-next), z)
	}
	return z
}

// optimum is AdamW on the mean square residual of y − a·v.
func (m latentModel) optimum(s method.Settings, kind string, a [][]float64, v []float64) []float64 {
	rate, decay := s.Number(kind+"_lr"), s.Number("weight_decay")
	mean, square := make([]float64, len(v)), make([]float64, len(v))
	n := float64(len(m.y))
	for k := 1; k <= int(s.Number(kind+"_steps")); k++ {
		r := apply(a, v)
		for i := range r {
			r[i] = m.weight[i] * (m.y[i] - r[i])
		}
		g := sum(-2/n, apply(transpose(a), r))
		mean = sum(0.9, mean, 0.1, g)
		for i := range g {
			square[i] = 0.999*square[i] + 0.001*g[i]*g[i]
		}
		next := sum(1-rate*decay, v)
		for i := range next {
			next[i] -= rate * (mean[i] / (1 - math.Pow(0.9, float64(k)))) / (math.Sqrt(square[i]/(1-math.Pow(0.999, float64(k)))) + 1e-8)
		}
		v = next
		if length(r)*length(r)/n < s.Number("tolerance")*s.Number("tolerance") {
			break
		}
	}
	return v
}
