package statistic

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestStatisticsEqualScipyAndStatsmodels compares with the figures that tools/statistics_vectors.py wrote.
func TestStatisticsEqualScipyAndStatsmodels(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join("testdata", "statistics.json"))
	if err != nil {
		t.Fatal(err)
	}
	var want struct {
		Quantiles map[string]float64 `json:"quantiles"`
		Means     []struct {
			Values     []float64 `json:"values"`
			Groups     []uint64  `json:"groups"`
			Mean, Half float64
		} `json:"means"`
		SignedRank []struct {
			Differences []float64 `json:"differences"`
			P           float64   `json:"p"`
		} `json:"signed_rank"`
		Holm []struct{ P, Adjusted []float64 } `json:"holm"`
	}
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	if len(want.Quantiles) == 0 || len(want.Means) == 0 || len(want.SignedRank) == 0 || len(want.Holm) == 0 {
		t.Fatal("no reference values")
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.IsNaN(got) || math.Abs(got-want) > 1e-6*max(1, math.Abs(want)) {
			t.Errorf("%s = %.12g, want %.12g", what, got, want)
		}
	}
	for df, q := range want.Quantiles {
		n, err := strconv.Atoi(df)
		if err != nil {
			t.Fatal(err)
		}
		near("quantile of t with "+df, studentQuantile(n), q)
	}
	for _, m := range want.Means {
		e := ClusterMean(m.Values, m.Groups)
		near("mean", e.Mean, m.Mean)
		near("half-width", *e.HalfWidth, m.Half)
	}
	for _, s := range want.SignedRank {
		near("p of "+strconv.Itoa(len(s.Differences))+" differences", signedRank(s.Differences), s.P)
	}
	for _, f := range want.Holm {
		for i, p := range holm(f.P) {
			near("adjusted p", p, f.Adjusted[i])
		}
	}
}

func TestSignedRankWithoutDifference(t *testing.T) {
	t.Parallel()
	for _, d := range [][]float64{nil, {0, 0}} {
		if p := signedRank(d); !math.IsNaN(p) {
			t.Errorf("p of %v = %g, want none", d, p)
		}
	}
}

// The distribution is exact up to 13 differences with ties, and normal above. One of n equal differences has another
// sign than the others: its rank is (n+1)/2.
func TestSignedRankOfTies(t *testing.T) {
	t.Parallel()
	ties := func(n int) []float64 {
		d := make([]float64, n)
		for i := range d {
			d[i] = 0.5
		}
		d[n/2] = -0.5
		return d
	}
	z := (7.5 - 52.5) / math.Sqrt(14.*15*29/24-(14.*14*14-14)/48)
	for n, want := range map[int]float64{13: 2 * 14. / 8192, 14: math.Erfc(-z / math.Sqrt2)} {
		if p := signedRank(ties(n)); !(math.Abs(p-want) <= 1e-12) {
			t.Errorf("p of %d differences = %.12g, want %.12g", n, p, want)
		}
	}
}

// Without values, with one, and with equal ones; undefined values do not count. The reference has other means.
func TestEstimate(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	for _, tt := range []struct {
		values     []float64
		n          int
		mean, half float64 // NaN: none
	}{
		{nil, 0, 0, nan}, {[]float64{nan, nan}, 0, 0, nan}, {[]float64{nan, 5}, 1, 5, nan}, {[]float64{7, 7, 7}, 3, 7, 0},
		// s = sqrt(10/4) = 1.5811388, half = 2.7764451 * s / sqrt(5) = 1.9632432.
		{[]float64{1, nan, 2, 3, 4, 5}, 5, 3, 1.9632432},
	} {
		e := Mean(tt.values)
		if e.N != tt.n || !(math.Abs(e.Mean-tt.mean) <= 1e-12) {
			t.Errorf("%v: n = %d, mean = %g, want %d, %g", tt.values, e.N, e.Mean, tt.n, tt.mean)
		}
		if got := e.HalfWidth; (got == nil) != math.IsNaN(tt.half) || got != nil && !(math.Abs(*got-tt.half) <= 1e-6) {
			t.Errorf("%v: estimate %+v, want half-width %g", tt.values, e, tt.half)
		}
	}
}

// TestUnreachable: 8 images give p of at least 2/2^8, times 30 tests 0.234; 11 images, 30·2/2^11 = 0.029, are the first.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tests, n int
		want     string
	}{
		{30, 8, "No p value can be below 0.23 here (n = 8, tests: 30)"}, {30, 8, "at least 11 images"}, {30, 10, "at least 11 images"}, {30, 11, ""},
		{1, 5, "at least 6 images"}, {1, 6, ""}, {45, 2, "below 1 here"}, {0, 0, ""},
	} {
		if got := UnreachableNote(c.tests, c.n); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%d tests of %d images: %q, want %q", c.tests, c.n, got, c.want)
		}
	}
}

// TestMeansOfImages: the rank test gets one value per image, the mean of its defined values.
func TestMeansOfImages(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	got := clusters([]float64{1, nan, 5, 2, 9, nan, 6}, []uint64{7, 7, 8, 7, 8, 9, 7})
	if want := []cluster{{3, 3}, {2, 7}}; !slices.Equal(got, want) {
		t.Errorf("means %v, want %v", got, want)
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
	if got.Ratio != nil || got.Correlation != nil || got.Samples != 2 || got.ErrorRMS != math.Sqrt(0.03125) {
		t.Errorf("equal runs: %+v", got)
	}
}

// TestCalibrationKnown compares the figures of several samples with those of their definitions.
func TestCalibrationKnown(t *testing.T) {
	t.Parallel()
	levels := []float64{0.3, 0.7, 1.5, 3, 6, 12, 24, 48, 100} // d in grey levels of 255
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
	if got.Samples != len(levels) {
		t.Fatalf("%+v", got)
	}
	near := func(x, y float64) bool { return math.Abs(x-y) < 1e-9 }
	meanD, meanE, squaresD, squaresE := 0.0, 0.0, 0.0, 0.0
	for i := range levels {
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
}
