package report

import (
	"math"
	"testing"
)

func TestStudentQuantile(t *testing.T) {
	t.Parallel()
	// Two-sided 95 % points from printed tables of the t distribution.
	for df, want := range map[int]float64{
		1: 12.70620474, 2: 4.30265273, 3: 3.18244631, 4: 2.77644511, 5: 2.57058184,
		10: 2.22813885, 30: 2.04227246, 120: 1.97993041, 200: 1.97189622, 1000: 1.96233908,
	} {
		if got := studentQuantile(df); math.Abs(got-want) > 1e-7 {
			t.Errorf("df %d: quantile = %.9f, want %.8f", df, got, want)
		}
	}
	// Closed form and expansion agree where one replaces the other.
	for _, df := range []int{199, 200} {
		if d := studentQuantile(df) - studentExpansion(float64(df)); math.Abs(d) > 1e-8 {
			t.Errorf("df %d: closed form and expansion differ by %g", df, d)
		}
	}
}

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
			e := estimate(tt.values)
			if e.N != tt.n || math.Abs(e.Mean-tt.mean) > 1e-12 {
				t.Errorf("n = %d, mean = %g, want %d, %g", e.N, e.Mean, tt.n, tt.mean)
			}
			if got := figure(e.HalfWidth); math.IsNaN(got) != math.IsNaN(tt.half) || math.Abs(got-tt.half) > 1e-6 {
				t.Errorf("half-width = %g, want %g", got, tt.half)
			}
		})
	}
}

func TestFigureIsFiniteOrUndefined(t *testing.T) {
	t.Parallel()
	for _, v := range []*float64{nil, ptr(math.NaN()), ptr(math.Inf(1)), ptr(math.Inf(-1))} {
		if !math.IsNaN(figure(v)) {
			t.Errorf("figure = %v, want undefined", v)
		}
	}
	if v := ptr(0); figure(v) != 0 {
		t.Error("zero must be defined")
	}
}
