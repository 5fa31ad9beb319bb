package statistic

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strconv"
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
		near("half-width", Value(e.HalfWidth), m.Half)
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
