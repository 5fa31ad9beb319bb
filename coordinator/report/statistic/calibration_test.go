package statistic

import (
	"math"
	"math/rand/v2"
	"testing"
)

// draws makes runs and a truth of samples with the mean 0.5 whose deviations vary. The truth has factor times the deviation
// of the runs: 1 is calibrated.
func draws(seed uint64, samples, runs int, factor float64) (*Spread, []float64) {
	random := rand.New(rand.NewPCG(seed, 7))
	deviations, truth := make([]float64, samples), make([]float64, samples)
	for i := range samples {
		deviations[i] = 0.002 * math.Exp(4*random.Float64()) // 0.5 to 28 grey levels
		truth[i] = 0.5 + factor*deviations[i]*random.NormFloat64()
	}
	s := &Spread{}
	for range runs {
		one := make([]float64, samples)
		for i := range one {
			one[i] = 0.5 + deviations[i]*random.NormFloat64()
		}
		s.Add(one)
	}
	return s, truth
}

// TestCalibratedRunsCoverTheTruth: with any number of runs the intervals cover 68.27 % and 95.45 %, within five standard
// errors, and the error equals the deviation.
func TestCalibratedRunsCoverTheTruth(t *testing.T) {
	t.Parallel()
	const samples = 200_000
	for _, runs := range []int{2, 3, 8, 50} {
		var c Calibrator
		for part := range uint64(4) { // several measurements
			c.Add(draws(part, samples/4, runs, 1))
		}
		got := c.Result()
		if got.Samples != samples {
			t.Errorf("%d runs: %d samples", runs, got.Samples)
		}
		for k, v := range []float64{got.Coverage1, got.Coverage2} {
			p := []float64{0.682689, 0.954500}[k]
			if tolerance := 5 * math.Sqrt(p*(1-p)/samples); !(math.Abs(v-p) <= tolerance) {
				t.Errorf("%d runs: coverage %.4f, want %.4f ± %.4f", runs, v, p, tolerance)
			}
		}
		if got.Ratio == nil || !(math.Abs(*got.Ratio-1) <= 0.02) {
			t.Errorf("%d runs: ratio %v, want 1", runs, *got.Ratio)
		}
		if got.Correlation == nil || !(*got.Correlation >= 0.3) || !(*got.Correlation < 1) {
			t.Errorf("%d runs: correlation %v", runs, *got.Correlation)
		}
		if runs < 50 {
			continue
		}
		// With many runs the deviation is known, and each bin is calibrated.
		total := 0
		for _, b := range got.Bins {
			total += b.Samples
			if b.Samples > 5000 && !(math.Abs(b.ErrorRMS/b.DeviationRMS-1) <= 0.1) {
				t.Errorf("bin from %v: error %v, deviation %v", b.From, b.ErrorRMS, b.DeviationRMS)
			}
		}
		if total != samples {
			t.Errorf("the bins have %d samples", total)
		}
	}
}

// TestSpreadKnown computes mean and deviation by hand, and the figures of constant pictures.
func TestSpreadKnown(t *testing.T) {
	t.Parallel()
	s := &Spread{}
	for _, v := range []float64{0.2, 0.4, 0.9} {
		s.Add([]float64{v, 0.5})
	}
	if !(math.Abs(s.Mean[0]-0.5) <= 1e-15) || !(math.Abs(s.Deviation(0)-math.Sqrt(0.13)) <= 1e-15) || s.Mean[1] != 0.5 || s.Deviation(1) != 0 {
		t.Errorf("mean %v, deviations %v, %v", s.Mean, s.Deviation(0), s.Deviation(1))
	}
	flat := &Spread{}
	flat.Add([]float64{0.5, 0.5})
	flat.Add([]float64{0.5, 0.5})
	var c Calibrator
	if c.Result() != nil {
		t.Error("a calibration without samples")
	}
	c.Add(flat, []float64{0.5, 0.75})
	got := c.Result()
	if got.Ratio != nil || got.Correlation != nil || got.Coverage1 != 0.5 || len(got.Bins) != 1 || got.Bins[0].Samples != 2 || got.ErrorRMS != math.Sqrt(0.03125) {
		t.Errorf("equal runs: %+v", got)
	}
}

// TestCalibrationKnown has one sample in each bin and compares the figures with those of their definitions.
func TestCalibrationKnown(t *testing.T) {
	t.Parallel()
	levels := []float64{0.3, 0.7, 1.5, 3, 6, 12, 24, 48, 100} // d in grey levels of 255
	edges := []float64{0, 0.5, 1, 2, 4, 8, 16, 32, 64, 0}
	errs := []float64{0.2, 0.9, 1.2, 5, 4, 30, 10, 60, 50}
	low, high, truth := make([]float64, len(levels)), make([]float64, len(levels)), make([]float64, len(levels))
	for i, d := range levels {
		a := d / 255 / math.Sqrt(3) // runs m-a and m+a have the deviation √2 a, which √(1+1/2) widens
		low[i], high[i], truth[i] = 0.5-a, 0.5+a, 0.5+errs[i]/255
	}
	s := &Spread{}
	s.Add(low)
	s.Add(high)
	var c Calibrator
	c.Add(s, truth)
	got := c.Result()
	if len(got.Bins) != len(levels) || got.Samples != len(levels) {
		t.Fatalf("%+v", got)
	}
	near := func(x, y float64) bool { return math.Abs(x-y) < 1e-9 }
	meanD, meanE, squaresD, squaresE := 0.0, 0.0, 0.0, 0.0
	for i, b := range got.Bins {
		if b.Samples != 1 || !near(b.From*255, edges[i]) || !near(b.To*255, edges[i+1]) || !near(b.DeviationRMS*255, levels[i]) || !near(b.ErrorRMS*255, errs[i]) {
			t.Errorf("bin %d is %+v", i, b)
		}
		meanD, meanE = meanD+levels[i]/9, meanE+errs[i]/9
		squaresD, squaresE = squaresD+levels[i]*levels[i]/9, squaresE+errs[i]*errs[i]/9
	}
	both, onlyD, onlyE := 0.0, 0.0, 0.0
	for i := range levels {
		both += (levels[i] - meanD) * (errs[i] - meanE)
		onlyD += (levels[i] - meanD) * (levels[i] - meanD)
		onlyE += (errs[i] - meanE) * (errs[i] - meanE)
	}
	if r := both / math.Sqrt(onlyD*onlyE); got.Correlation == nil || !near(*got.Correlation, r) {
		t.Errorf("correlation %v, want %v", *got.Correlation, r)
	}
	if !near(*got.Ratio, math.Sqrt(squaresE/squaresD)) || !near(got.ErrorRMS*255, math.Sqrt(squaresE)) || !near(got.DeviationRMS*255, math.Sqrt(squaresD)) {
		t.Errorf("%+v", got)
	}
	// Student's T with one degree of freedom: 1.837 d at 68.27 %, 13.97 d at 95.45 %.
	if got.Coverage1 != 8./9 || got.Coverage2 != 1 {
		t.Errorf("coverage %v and %v", got.Coverage1, got.Coverage2)
	}
}
