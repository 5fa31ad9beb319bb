package job

import "testing"

// TestTried: a sentence has all that was tried, one unit of widths, and no level that contradicts another.
func TestTried(t *testing.T) {
	t.Parallel()
	const misfit, excess = "does not explain the picture", "is more noise than the picture has"
	sigma := func(level, next float64, finding string) *Doubt {
		return &Doubt{Setting: sigmaText(level), Finding: finding, Level: level, Sigma: next, Raised: next > level}
	}
	wide := &Doubt{Setting: stdText(20), Finding: "is wider than the blur of the picture", Level: 0.02, Sigma: 0.02, Std: 36, Given: 9}
	for _, c := range []struct {
		tried          Tried
		sigma          float64
		offer, changed string
	}{
		{Tried{sigma(0.002, 0.004, misfit), sigma(0.004, 0.008, misfit)}, 0.008, "sigma 0.002 to 0.004 does not explain the picture; try sigma 0.008",
			"sigma 0.002 to 0.004 does not explain the picture; restored with sigma 0.008"},
		{Tried{sigma(0.078, 0.0412, excess), sigma(0.0412, 0.0567, misfit)}, 0.0567, "sigma 0.078 is more noise than the picture has, sigma 0.0412 does not explain the picture; try sigma 0.0567",
			"sigma 0.078 is more noise than the picture has, sigma 0.0412 does not explain the picture; restored with sigma 0.0567"},
		{Tried{wide}, 0.02, "std 20 is wider than the blur of the picture; try std 9", "std 20 is wider than the blur of the picture; restored with std 9"},
		{Tried{wide, sigma(0.02, 0.04, misfit)}, 0.04, "std 20 is wider than the blur of the picture, sigma 0.02 does not explain the picture; try sigma 0.04",
			"std 20 is wider than the blur of the picture, sigma 0.02 does not explain the picture; restored with std 9 and sigma 0.04"},
		{Tried{sigma(0.5, 0.5, excess)}, 0.5, "sigma 0.5 is more noise than the picture has", "sigma 0.5 is more noise than the picture has; restored with sigma 0.5"},
	} {
		if got := c.tried.offer(); got != c.offer {
			t.Errorf("offer %q, want %q", got, c.offer)
		}
		if got := c.tried.changed(c.sigma); got != c.changed {
			t.Errorf("changed %q, want %q", got, c.changed)
		}
	}
	j := &Job{tried: Tried{sigma(0.1, 0.02, excess), sigma(0.02, 0.045, misfit)}}
	for sigma, advised := range map[float64]bool{0.01: false, 0.02: false, 0.05: true, 0.1: false, 0.2: false} {
		if got := j.unlessTried(sigma, "x"); (got != "") != advised {
			t.Errorf("sigma %g: advice %q, want one: %v", sigma, got, advised)
		}
	}
}
