package job

import (
	"math"
	"strings"
	"testing"

	"ddiff/internal/gpuworker/workertest"
	"ddiff/internal/restore/noise"
	"ddiff/restore/item"
)

// TestResidualWithPhotons: the true image has a residual of about zero, a ratio of about 1 and no warning; another image has the warning with
// its own words. The result has the variance of the noise.
func TestResidualWithPhotons(t *testing.T) {
	t.Parallel()
	e := engineOf(t)
	in := Loader{Engine: e}
	for _, photons := range []float64{0, 10, 100, 1e4} {
		tk := planned(t, in, workertest.Item(t, e, 64, 64, func(it *item.Item) { it.Task, it.Params, it.Photons = "denoise", nil, photons }))
		a := make([]float32, tk.Op.MeasurementSize())
		for i := range a {
			a[i] = 0.8 * float32(1-2*(i/16%2)) // grey of 0.1 and 0.9
		}
		y, err := e.Measure(t.Context(), tk.Op, a, nil, tk.noise(), noise.Key{9})
		must(t, err)
		tk.Problem.Y, tk.applied, tk.Solution.X = y, a, a
		m, err := tk.score()
		must(t, err)
		sigma := tk.Item.Sigma
		variance := sigma * sigma
		if photons > 0 {
			variance += 2 / photons // 4·p/N with a mean p of a half
			if !m.Has("noise_variance") || math.Abs(m["noise_variance"]/variance-1) > 0.05 {
				t.Fatalf("%g photons: the variance is %v, want about %g", photons, m["noise_variance"], variance)
			}
			variance = m["noise_variance"]
		} else if m.Has("noise_variance") {
			t.Error("a result without photons has a variance")
		}
		if ratio := m["residual"]/variance + 1; math.Abs(ratio-1) > 5*tk.noise().Spread(y) {
			t.Errorf("%g photons: the true image has the ratio %g, want 1 ± %g", photons, ratio, tk.noise().Spread(y))
		}
		if w := tk.warnResidual(m, math.NaN()); w != nil {
			t.Errorf("%g photons: the true image has the warning %s", photons, w.Text)
		}
		for cause, ratio := range map[string]float64{"does not explain": 3, "fits the noise": 0.01} {
			residual := (ratio - 1) * variance
			w := tk.warnResidual(item.Metrics{"residual": residual}, math.NaN())
			if w == nil || !strings.Contains(w.Text, cause) || strings.Contains(w.Text, "variance of the noise") != (photons > 0) ||
				strings.Contains(w.Text, "photons are too few") != (photons > 0 && ratio < 1) || strings.Contains(w.Text, "sigma is too large") != (photons == 0 && ratio < 1) {
				t.Errorf("%g photons, ratio %g: %+v", photons, ratio, w)
			}
		}
	}
}

// TestPhotonsOfNoPicture: an item with photons for a measurement that is no picture fails before it is measured.
func TestPhotonsOfNoPicture(t *testing.T) {
	t.Parallel()
	e := engineOf(t)
	it := workertest.Item(t, e, 64, 64, func(it *item.Item) { it.Task, it.Params, it.Photons = "phase_retrieval", nil, 30 })
	tk := &Job{Item: it}
	err := Loader{Engine: e}.Plan(tk)
	if err == nil || !strings.Contains(err.Error(), "photons: its measurement is no picture") {
		t.Errorf("error %v", err)
	}
}
