package statistic

import (
	"math"
	"testing"
)

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
