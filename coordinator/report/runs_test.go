package report

import (
	"math"
	"testing"
)

// 1e-8 is added to the mean square: equal samples have 80 dB.
func TestPSNROfSamples(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		difference, want float64
	}{{0, 80}, {1e-4, 80 - 10*math.Log10(2)}, {0.1, -10 * math.Log10(0.01+1e-8)}} {
		if got := psnrOf([]float64{0.5, 0.25}, []float64{0.5 + c.difference, 0.25 - c.difference}); !(math.Abs(got-c.want) <= 1e-9) {
			t.Errorf("a difference of %g has %g dB, want %g", c.difference, got, c.want)
		}
	}
}
