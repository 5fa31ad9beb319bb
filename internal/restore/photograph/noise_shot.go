package photograph

import (
	"cmp"
	"math"
	"slices"
)

// EstimateShot is Estimate where the variance of the noise grows with the brightness, as that of photons does: σ² + 4·p/N for the intensity p, 0 for black and 1 for white. It
// estimates the variance of each channel in parts of equal size by brightness, and fits a line to them, as Foi, Trimeche, Katkovnik and Egiazarian ("Practical Poissonian-Gaussian noise
// modeling and fitting for single-image raw-data", IEEE Transactions on Image Processing 17, 2008) do to local variances; here it is that of Theil and Sen, which one part with texture
// does not move. level is then the root of the mean variance of all samples, with two significant digits, and shot is true. Where the variance does not grow so, level is that of Estimate.
func EstimateShot(p Noisy) (level float64, shot bool, err error) {
	if level, err = EstimateNoise(p); err != nil {
		return 0, false, err
	}
	var at, variances []float64
	p = p.distinct()
	for c := range p.Channels {
		of := p
		of.Channels, of.Pix = 1, p.Pix[c*p.Height*p.Width:][:p.Height*p.Width]
		s := newPatches(of)
		slices.SortStableFunc(s.places, func(a, b place) int { return cmp.Compare(a.mean, b.mean) })
		n := min(shades, len(s.places)/s.least())
		for k := range n {
			part := s.places[k*len(s.places)/n : (k+1)*len(s.places)/n]
			if v, err := s.noise(part); err == nil {
				at, variances = append(at, (part[len(part)/2].mean+1)/2), append(variances, v)
			}
		}
	}
	if len(at) < fewestShades {
		return level, false, nil
	}
	a, b, ok := line(at, variances)
	if !ok {
		return level, false, nil
	}
	mean := 0.0
	for _, v := range p.Pix {
		mean += (float64(v) + 1) / 2 / float64(len(p.Pix))
	}
	return roundTo(math.Sqrt(a+b*max(0, mean)), digitsShot), true, nil
}

// line fits y = a + b·x with a ≥ 0, and reports whether it is that of a variance that grows.
func line(x, y []float64) (a, b float64, ok bool) {
	var slopes []float64
	for i := range x {
		for k := range i {
			if d := x[i] - x[k]; d > 0 {
				slopes = append(slopes, (y[i]-y[k])/d)
			}
		}
	}
	if len(slopes) == 0 {
		return 0, 0, false
	}
	each := func(f func(i int) float64) float64 {
		out := make([]float64, len(x))
		for i := range x {
			out[i] = f(i)
		}
		return middle(out)
	}
	b = middle(slopes)
	a = each(func(i int) float64 { return y[i] - b*x[i] })
	if a < 0 {
		a, b = 0, each(func(i int) float64 { return y[i] / max(x[i], 0.01) })
	}
	at := func(i int) float64 { return a + b*x[i] }
	off := each(func(i int) float64 { return math.Abs(y[i]-at(i)) / max(at(i), 1e-12) })
	return a, b, b > 0 && a+b*slices.Max(x) >= leastGrowth*(a+b*slices.Min(x)) && off <= largestError
}

// middle returns the median.
func middle(v []float64) float64 {
	slices.Sort(v)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}
