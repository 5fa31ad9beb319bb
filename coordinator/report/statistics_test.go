package report

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
		e := estimate(m.Values, m.Groups)
		near("mean", e.Mean, m.Mean)
		near("half-width", figure(e.HalfWidth), m.Half)
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

// Up to ten approaches are compared in pairs, more of them with the first.
func TestComparisonsOfManyApproaches(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{1: 0, 2: 1, 9: 36, 10: 45, 11: 10, 12: 11} {
		var cells []*cell
		for i := range n {
			c := &cell{pairing: &pairing{}}
			c.row.Problem = Problem{Task: "hdr", Size: "64x64"}
			c.row.Method = strconv.Itoa(i)
			for image := range 3 {
				c.pairing.targets = append(c.pairing.targets, [16]byte{byte(image)})
				c.pairing.images = append(c.pairing.images, uint64(image))
				c.pairing.psnr = append(c.pairing.psnr, float64(20+i*image))
			}
			cells = append(cells, c)
		}
		got := compare(cells, Varying{})
		if len(got) != want {
			t.Errorf("%d approaches have %d comparisons, want %d", n, len(got), want)
		}
		for i, c := range got {
			if n > 10 && (c.A != "0" || c.B != strconv.Itoa(i+1)) {
				t.Errorf("comparison %d of %d approaches is of %s and %s", i, n, c.A, c.B)
			}
			if c.Refused != "" || c.Difference.N != 3 || c.P == nil || c.PHolm == nil {
				t.Errorf("comparison %+v", c)
			}
		}
	}
}

// The text of a problem has what varies and what is known.
func TestVaryingTexts(t *testing.T) {
	t.Parallel()
	r := &Row{Problem: Problem{Sigma: 0.125, Size: "64x64"}, Approach: Approach{Method: "ddiff", Prior: "0123456789"}}
	r.varyingParams, r.varyingSettings = "factor=2", "steps=50"
	all := Varying{Params: true, Sigma: true, Size: true, Prior: true, Settings: true}
	for _, c := range []struct {
		row     *Row
		varying Varying
		want    string
	}{
		{r, all, "factor=2, σ 0.125, 64x64; ddiff prior 01234567 steps=50"},
		{r, Varying{}, "; ddiff"},
		{&Row{Approach: Approach{Method: "dps"}}, all, "σ 0; dps prior "},
		{r, Varying{Params: true}, "factor=2; ddiff"}, {r, Varying{Sigma: true}, "σ 0.125; ddiff"}, {r, Varying{Size: true}, "64x64; ddiff"},
	} {
		if got := c.varying.problemText(c.row) + "; " + c.varying.approachText(c.row); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

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
