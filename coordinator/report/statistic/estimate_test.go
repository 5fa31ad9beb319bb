package statistic

import (
	"math"
	"testing"
)

func TestEstimate(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	tests := []struct {
		name   string
		values []float64
		n      int
		mean   float64
		half   float64 // NaN: none
	}{
		{"nothing", nil, 0, 0, nan},
		{"undefined", []float64{nan, nan}, 0, 0, nan},
		{"single", []float64{5}, 1, 5, nan},
		{"single beside undefined", []float64{nan, 5}, 1, 5, nan},
		// s = sqrt(10/4) = 1.5811388, half = 2.7764451 * s / sqrt(5) = 1.9632432.
		{"one to five", []float64{1, 2, 3, 4, 5}, 5, 3, 1.9632432},
		{"undefined left out", []float64{1, nan, 2, 3, 4, 5}, 5, 3, 1.9632432},
		{"equal values", []float64{7, 7, 7}, 3, 7, 0},
		// s = 1.4142136, half = 12.7062047 * s / sqrt(2) = 12.7062047.
		{"two", []float64{10, 12}, 2, 11, 12.7062047},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			images := make([]uint64, len(tt.values))
			for i := range images {
				images[i] = uint64(i)
			}
			e := ClusterMean(tt.values, images)
			if e.N != tt.n || !(math.Abs(e.Mean-tt.mean) <= 1e-12) {
				t.Errorf("n = %d, mean = %g, want %d, %g", e.N, e.Mean, tt.n, tt.mean)
			}
			if got := Value(e.HalfWidth); math.IsNaN(got) != math.IsNaN(tt.half) || math.Abs(got-tt.half) > 1e-6 {
				t.Errorf("half-width = %g, want %g", got, tt.half)
			}
		})
	}
}

func TestFigureIsFiniteOrUndefined(t *testing.T) {
	t.Parallel()
	for _, v := range []*float64{nil, new(math.NaN()), new(math.Inf(1)), new(math.Inf(-1))} {
		if !math.IsNaN(Value(v)) {
			t.Errorf("figure = %v, want undefined", v)
		}
	}
	if v := new(0.0); Value(v) != 0 {
		t.Error("zero must be defined")
	}
}
