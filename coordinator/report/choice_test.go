package report

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ddiff/manifest"
)

// runsOf has one measurement with a run for each pair of PSNR and residual.
func runsOf(t *testing.T, name string, runs ...[2]float64) []manifest.Result {
	t.Helper()
	var out []manifest.Result
	for i, r := range runs {
		out = append(out, result(t, "phase_retrieval", "ddiff", name, i, scored(r[0], 10, r[0]/100, r[1])))
	}
	return out
}

// TestChoose compares with figures computed by hand, for best of 2 among 4 runs within 1 dB of the best, 30 dB.
func TestChoose(t *testing.T) {
	t.Parallel()
	results := slices.Concat(
		// Six pairs. The residuals order the runs 1, 3, 0, 2, their distances from zero 0, 3, 1, 2.
		runsOf(t, "a", [2]float64{20, 0.001}, [2]float64{30, -0.002}, [2]float64{10, 0.003}, [2]float64{29.5, -0.0015}),
		// All runs of b are good.
		runsOf(t, "b", [2]float64{30, 0.001}, [2]float64{30, 0.002}, [2]float64{30, 0.003}, [2]float64{30, 0.004}),
		runsOf(t, "c", [2]float64{30, 0.001}), // too few
	)
	c, err := Choose(stream(results), nil, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Groups) != 1 || c.Groups[0].Runs != 8 || c.Groups[0].LeftOut != 1 {
		t.Fatalf("%+v", c)
	}
	for _, want := range []struct {
		rule       Rule
		good, psnr float64 // of a
	}{
		{RuleFirst, 2.0 / 4, 89.5 / 4},
		{RuleMean, math.NaN(), 89.5 / 4},
		{RuleClosestToNoise, 3.0 / 6, (3*20 + 2*29.5 + 30) / 6}, // 0 of {01,02,03}, 3 of {13,23}, 1 of {12}
		{RuleMinMisfit, 5.0 / 6, (3*30 + 2*29.5 + 20) / 6},      // 1 of {01,12,13}, 3 of {03,23}, 0 of {02}
		{RuleBestPSNR, 5.0 / 6, (3*30 + 2*29.5 + 20) / 6},
		{RuleBestSSIM, 5.0 / 6, (3*30 + 2*29.5 + 20) / 6},
	} {
		i := slices.IndexFunc(c.Groups[0].Rules, func(r RuleChoice) bool { return r.Rule == want.rule })
		r := c.Groups[0].Rules[i]
		if want.rule == RuleMean {
			if r.Good.N != 0 {
				t.Errorf("%s picks no run, but has %+v", r.Rule, r.Good)
			}
		} else if !(math.Abs(r.Good.Mean-(want.good+1)/2) <= 1e-12) || r.Good.N != 2 {
			t.Errorf("%s: good %+v, want mean %g", r.Rule, r.Good, (want.good+1)/2)
		}
		if !(math.Abs(r.PSNR.Mean-(want.psnr+30)/2) <= 1e-12) || !(math.Abs(r.Gain.Mean-(want.psnr-89.5/4)/2) <= 1e-12) {
			t.Errorf("%s: PSNR %+v, gain %+v", r.Rule, r.PSNR, r.Gain)
		}
		if r.Oracle != (want.rule == RuleBestPSNR || want.rule == RuleBestSSIM) {
			t.Errorf("%s: oracle %t", r.Rule, r.Oracle)
		}
		// Half the interval of two images is 12.706 |a - b| / 2.
		if r.Rule == RuleMinMisfit && !(math.Abs(*r.PSNR.HalfWidth-12.7062047*(30-want.psnr)/2) <= 1e-6) {
			t.Errorf("%s: half-width %g", r.Rule, *r.PSNR.HalfWidth)
		}
	}
	var text bytes.Buffer
	if err := c.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	golden(t, "choices.txt", text.Bytes())

	if _, err := Choose(stream(results), nil, 5, 1); !errors.Is(err, ErrNotComparable) || !strings.Contains(err.Error(), "no measurement has 5 finished runs") {
		t.Errorf("5 of 4 runs: error %v", err)
	}
	for _, within := range []float64{-1, math.NaN(), math.Inf(1)} {
		if _, err := Choose(stream(results), nil, 2, within); err == nil {
			t.Errorf("within %g dB is accepted", within)
		}
	}
	if _, err := Choose(stream(results), nil, 0, 1); err == nil {
		t.Error("a choice among 0 runs is accepted")
	}
}

// TestChancesEqualEnumeration: the closed form equals what combine picks from every choice of k runs, with ties and
// undefined residuals.
func TestChancesEqualEnumeration(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "n")
		k := rapid.IntRange(1, n).Draw(t, "k")
		runs := make([]scores, n)
		for i := range runs {
			runs[i] = scores{
				PSNR:     float64(rapid.IntRange(0, 5).Draw(t, "psnr")),
				SSIM:     float64(rapid.IntRange(0, 5).Draw(t, "ssim")),
				Residual: rapid.SampledFrom([]float64{-2, -1, 0, 1, 2, math.NaN()}).Draw(t, "residual"),
				Seconds:  math.Ldexp(1, i), // identifies the run
			}
		}
		for _, r := range []Rule{RuleClosestToNoise, RuleMinMisfit, RuleBestPSNR, RuleBestSSIM} {
			want := make(map[string]float64)
			choices := 0
			for set := range 1 << n {
				var chosen []scores
				for i := range n {
					if set>>i&1 == 1 {
						chosen = append(chosen, runs[i])
					}
				}
				if len(chosen) == k {
					choices++
					s := r.combine(chosen)
					want[fmt.Sprint(s.PSNR, s.SSIM, s.Residual)]++
				}
			}
			ranked, chances := r.chances(runs, k)
			got, sum := make(map[string]float64), 0.0
			for i, s := range ranked {
				got[fmt.Sprint(s.PSNR, s.SSIM, s.Residual)] += chances[i]
				sum += chances[i]
			}
			if !(math.Abs(sum-1) <= 1e-12) {
				t.Fatalf("%s: the chances add up to %g", r, sum)
			}
			for key, p := range got {
				if !(math.Abs(p-want[key]/float64(choices)) <= 1e-12) {
					t.Fatalf("%s: run %s with chance %g, want %g of %d", r, key, p, want[key], choices)
				}
			}
		}
	})
}
