package metric

import (
	"math"
	"testing"
)

func TestMeanCI(t *testing.T) {
	t.Parallel()
	// 1..5: standard deviation sqrt(2.5), four degrees of freedom.
	mean, half := MeanCI([]float64{1, 2, 3, 4, 5})
	if want := 2.7764 * math.Sqrt(2.5/5); mean != 3 || math.Abs(half-want) > 1e-12 {
		t.Errorf("mean %v ± %v, want 3 ± %v", mean, half, want)
	}
	if mean, half := MeanCI([]float64{-2, -2, -2}); mean != -2 || half != 0 {
		t.Errorf("equal values: %v ± %v, want -2 ± 0", mean, half)
	}
	if mean, half := MeanCI([]float64{7}); mean != 7 || !math.IsNaN(half) {
		t.Errorf("one value: %v ± %v, want 7 ± NaN", mean, half)
	}
	if mean, half := MeanCI(nil); !math.IsNaN(mean) || !math.IsNaN(half) {
		t.Errorf("no values: %v ± %v, want NaN ± NaN", mean, half)
	}
}

// TestStudent975 compares with printed tables of the t distribution.
func TestStudent975(t *testing.T) {
	t.Parallel()
	for degrees, want := range map[int]float64{
		1: 12.7062, 2: 4.3027, 5: 2.5706, 10: 2.2281, 11: 2.2010, 12: 2.1788, 15: 2.1314, 20: 2.0860, 30: 2.0423, 100: 1.9840, 1e9: 1.9600,
	} {
		if got := student975(degrees); math.Abs(got-want) > 6e-5 {
			t.Errorf("%d degrees of freedom: %v, want %v", degrees, got, want)
		}
	}
}
