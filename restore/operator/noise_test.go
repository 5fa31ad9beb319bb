package operator_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"ddiff/internal/restore/noise"
	"ddiff/restore/operator"
)

// clean is a measurement without noise: entries of a picture, with some below black and above white.
func clean(m int) []float32 {
	a := make([]float32, m)
	for i := range a {
		a[i] = float32(i%29)/14*1.05 - 1.05 // −1.05 … 1.05
	}
	return a
}

// noisy adds noise to A(x) with a key.
func noisy(n operator.Noise, a []float32, draw int) []float32 {
	y := slices.Clone(a)
	operator.AddNoise(n, y, noise.Key{uint32(draw), 11, 13})
	return y
}

// TestNoiseStatistics compares [operator.Noise] with 4000 simulated measurements: the mean of (y − A(x))² is the mean variance, the mean of
// Variance(y) as well, within 4 standard errors of the simulation, and the ratio of the two has the mean 1 and the deviation Spread(y).
func TestNoiseStatistics(t *testing.T) {
	t.Parallel()
	const draws, m = 4000, 290
	for name, n := range map[string]operator.Noise{
		"normal": {Sigma: 0.05}, "few photons": {Photons: 5}, "photons": {Photons: 30}, "many photons": {Photons: 1e6},
		"both": {Sigma: 0.1, Photons: 30}, "mostly normal": {Sigma: 0.3, Photons: 1000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := clean(m)
			want, bias := 0.0, 0.0 // the mean variance of y, and the mean square of what is below black
			for _, v := range a {
				want += n.Sigma * n.Sigma / m
				if n.Photons > 0 {
					p := (float64(v) + 1) / 2
					want += 4 * max(0, p) / n.Photons / m
					bias += 4 * min(0, p) * min(0, p) / m
				}
			}
			var squares, estimates, ratios series
			spread := 0.0
			for k := range draws {
				y := noisy(n, a, k)
				sum := 0.0
				for i := range y {
					d := float64(y[i]) - float64(a[i])
					sum += d * d
				}
				squares.add(sum / m)
				estimates.add(n.Variance(y))
				ratios.add((sum/m - bias) / n.Variance(y))
				spread += n.Spread(y) / draws
			}
			if z := squares.z(want + bias); !(math.Abs(z) <= 4) {
				t.Errorf("the mean square is %g, want %g: %.1f standard errors", squares.mean(), want+bias, z)
			}
			// Without photons the estimate is σ² itself.
			if z := estimates.z(want); !(math.Abs(z) <= 4) && math.Abs(estimates.mean()/want-1) > 1e-9 {
				t.Errorf("the estimates have the mean %g, want %g: %.1f standard errors", estimates.mean(), want, z)
			}
			// A ratio of estimates has a bias of the second order in its spread.
			if d := ratios.mean() - 1; !(math.Abs(d) <= 4*ratios.deviation()/math.Sqrt(draws)+2*ratios.deviation()*ratios.deviation()) {
				t.Errorf("the mean ratio is %g", ratios.mean())
			}
			if r := spread / ratios.deviation(); !(r > 0.93 && r < 1.07) {
				t.Errorf("Spread is %.4f, the ratio has the deviation %.4f", spread, ratios.deviation())
			}
		})
	}
}

// series are numbers in a sum.
type series struct{ n, sum, square float64 }

func (s *series) add(x float64) { s.n, s.sum, s.square = s.n+1, s.sum+x, s.square+x*x }
func (s series) mean() float64  { return s.sum / s.n }
func (s series) deviation() float64 {
	return math.Sqrt(max(0, s.square/s.n-s.mean()*s.mean()))
}

// z is the distance of the mean from want in standard errors.
func (s series) z(want float64) float64 { return (s.mean() - want) / (s.deviation() / math.Sqrt(s.n)) }

// TestPhotonsDependOnPositionAndKey: the noise of an entry does not depend on the other entries, nor on their number; with another
// key it differs.
func TestPhotonsDependOnPositionAndKey(t *testing.T) {
	t.Parallel()
	n := operator.Noise{Sigma: 0.1, Photons: 30}
	a := clean(290)
	y := noisy(n, a, 1)
	if part := noisy(n, a[:100], 1); !slices.Equal(part, y[:100]) {
		t.Error("the noise of an entry depends on the size of the measurement")
	}
	other := slices.Clone(a)
	other[7] = 0.9
	changed := noisy(n, other, 1)
	other[7], changed[7] = a[7], y[7]
	if !slices.Equal(changed, y) {
		t.Error("the noise of an entry depends on another entry")
	}
	if slices.Equal(noisy(n, a, 2), y) {
		t.Error("two keys have equal noise")
	}
	if slices.Equal(noisy(operator.Noise{Photons: 30}, a, 1), y) {
		t.Error("sigma has no effect beside photons")
	}
	dark := noisy(operator.Noise{Photons: 30}, []float32{-1, -1.5}, 1)
	if dark[0] != -1 || dark[1] != -1 {
		t.Errorf("black entries have the counts %v, want none", dark)
	}
}

// TestMeasureWithPhotons: a simulated measurement has the noise of counts: multiples of 2/N above black.
func TestMeasureWithPhotons(t *testing.T) {
	t.Parallel()
	op := operator.Build(t, "denoise", nil, operator.Shape{Channels: 3, Height: 16, Width: 16})
	f := operator.Forwards(t, op)
	y, err := f.Measure(context.Background(), make([]float32, 3*16*16), nil, operator.Noise{Photons: 8}, noise.Key{1})
	must(t, err)
	for i, v := range y {
		if c := (v + 1) * 4; c != float32(math.Trunc(float64(c))) || c < 0 {
			t.Fatalf("entry %d is %v, no count of photons", i, v)
		}
	}
	if !(slices.Max(y) > 0.5 && slices.Min(y) < -0.5) {
		t.Errorf("the counts of mean 4 lie between %v and %v", slices.Min(y), slices.Max(y))
	}
}

// TestCheckNoise: measurements that are no picture have no photons.
func TestCheckNoise(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		task    string
		photons float64
		ok      bool
	}{
		{"denoise", 0, true}, {"denoise", 30, true}, {"denoise", operator.MaxPhotons, true}, {"denoise", 2 * operator.MaxPhotons, false},
		{"denoise", -1, false}, {"denoise", math.NaN(), false}, {"phase_retrieval", 0, true}, {"phase_retrieval", 30, false},
	} {
		op := operator.Build(t, c.task, nil, operator.Shape{Channels: 3, Height: 64, Width: 64})
		if err := op.CheckNoise(operator.Noise{Photons: c.photons}); (err == nil) != c.ok {
			t.Errorf("%s with %v photons: %v", c.task, c.photons, err)
		}
	}
}
