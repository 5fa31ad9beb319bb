package selection

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"ddiff/coordinator/report/reporttest"
	"ddiff/manifest"
)

// TestChancesEqualEnumeration: the closed form equals what combine picks from every choice of k runs, with ties and
// undefined residuals.
func TestChancesEqualEnumeration(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "n")
		k := rapid.IntRange(1, n).Draw(t, "k")
		runs := make([]Scores, n)
		for i := range runs {
			runs[i] = Scores{
				PSNR:     float64(rapid.IntRange(0, 5).Draw(t, "psnr")),
				SSIM:     float64(rapid.IntRange(0, 5).Draw(t, "ssim")),
				Residual: rapid.SampledFrom([]float64{-2, -1, 0, 1, 2, math.NaN()}).Draw(t, "residual"),
				Seconds:  math.Ldexp(1, i), // identifies the run
			}
		}
		for _, r := range []Rule{ClosestToNoise, MinMisfit, BestPSNR, BestSSIM} {
			want := make(map[string]float64)
			choices := 0
			for set := range 1 << n {
				var chosen []Scores
				for i := range n {
					if set>>i&1 == 1 {
						chosen = append(chosen, runs[i])
					}
				}
				if len(chosen) == k {
					choices++
					s := r.Combine(chosen)
					want[fmt.Sprint(s.PSNR, s.SSIM, s.Residual)]++
				}
			}
			ranked, chances := r.Chances(runs, k)
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

func TestParseRule(t *testing.T) {
	t.Parallel()
	for _, name := range manifest.Selections() {
		if r, err := Parse(string(name)); err != nil || string(r) != string(name) {
			t.Errorf("Parse(%q) = %q, %v", name, r, err)
		}
	}
	if len(Rules()) != len(manifest.Selections()) {
		t.Errorf("rules %v, selections of a campaign %v", Rules(), manifest.Selections())
	}
	if r, err := Parse(""); err != nil || r != First {
		t.Errorf("Parse of nothing = %q, %v, want first", r, err)
	}
	if _, err := Parse("best"); !errors.Is(err, ErrUnknownRule) {
		t.Errorf("Parse(best) = %v, want ErrUnknownRule", err)
	}
}

func TestRuleCombine(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	// Run 1 fits the measurement best, run 2 is closest to the truth.
	runs := []Scores{
		{PSNR: 20, SSIM: 0.5, Residual: 0.010, Baseline: 15, Seconds: 1},
		{PSNR: 22, SSIM: 0.6, Residual: 0.001, Baseline: 15, Seconds: 2},
		{PSNR: 27, SSIM: 0.7, Residual: 0.004, Baseline: 15, Seconds: 6},
	}
	tests := []struct {
		name string
		rule Rule
		runs []Scores
		want Scores
	}{
		{"first", First, runs, runs[0]},
		{"mean", Mean, runs, Scores{PSNR: 23, SSIM: 0.6, Residual: 0.005, Baseline: 15, Seconds: 3}},
		{"min_misfit pays for all runs", MinMisfit, runs, Scores{PSNR: 22, SSIM: 0.6, Residual: 0.001, Baseline: 15, Seconds: 9}},
		{"best_psnr pays for all runs", BestPSNR, runs, Scores{PSNR: 27, SSIM: 0.7, Residual: 0.004, Baseline: 15, Seconds: 9}},
		{"an overfitted run has the smaller misfit", MinMisfit,
			[]Scores{{Residual: 0.001, PSNR: 1}, {Residual: -0.002, PSNR: 2}}, Scores{Residual: -0.002, PSNR: 2}},
		{"an overfitted run is not closest to the noise", ClosestToNoise,
			[]Scores{{Residual: -0.002, PSNR: 1}, {Residual: 0.001, PSNR: 2}}, Scores{Residual: 0.001, PSNR: 2}},
		{"a misfit below the noise counts as one above", ClosestToNoise,
			[]Scores{{Residual: 0.003, PSNR: 1}, {Residual: -0.002, PSNR: 2}}, Scores{Residual: -0.002, PSNR: 2}},
		{"best_ssim pays for all runs", BestSSIM, runs, Scores{PSNR: 27, SSIM: 0.7, Residual: 0.004, Baseline: 15, Seconds: 9}},
		{"tie goes to the earlier run", MinMisfit,
			[]Scores{{Residual: 0.1, PSNR: 1}, {Residual: 0.1, PSNR: 2}}, Scores{Residual: 0.1, PSNR: 1}},
		{"undefined residual loses", MinMisfit,
			[]Scores{{Residual: nan, PSNR: 1}, {Residual: 5, PSNR: 2}}, Scores{Residual: 5, PSNR: 2}},
		{"oracle without truth keeps the first", BestPSNR,
			[]Scores{{PSNR: nan, Residual: 1}, {PSNR: nan, Residual: 2}}, Scores{PSNR: nan, Residual: 1}},
		{"mean of the defined values", Mean,
			[]Scores{{PSNR: nan, Residual: 1}, {PSNR: 8, Residual: 2}}, Scores{PSNR: 8, Residual: 1.5}},
		{"one run", MinMisfit, runs[:1], runs[0]},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := tt.rule.Combine(tt.runs)
			for _, f := range []struct {
				name      string
				got, want float64
			}{
				{"psnr", got.PSNR, tt.want.PSNR}, {"ssim", got.SSIM, tt.want.SSIM},
				{"residual", got.Residual, tt.want.Residual}, {"baseline", got.Baseline, tt.want.Baseline},
				{"seconds", got.Seconds, tt.want.Seconds},
			} {
				if math.IsNaN(f.got) != math.IsNaN(f.want) || math.Abs(f.got-f.want) > 1e-12 {
					t.Errorf("%s = %g, want %g", f.name, f.got, f.want)
				}
			}
		})
	}
}

// TestCombine has three runs of a measurement, of which one has failed.
func TestCombine(t *testing.T) {
	t.Parallel()
	runs := []manifest.Result{
		reporttest.Result(t, "hdr", "ddiff", "a", 0, reporttest.Ended(manifest.OutcomeFailed, "no such file")),
		reporttest.Result(t, "hdr", "ddiff", "a", 1, reporttest.Scored(25, 20, 0.75, 0.5)),
		reporttest.Result(t, "hdr", "ddiff", "a", 2, reporttest.Scored(28, 20, 0.25, 0.25)),
	}
	for rule, want := range map[Rule][3]float64{First: {25, 0.75, 0.5}, Mean: {26.5, 0.5, 0.375}, BestPSNR: {28, 0.25, 0.25}} {
		f, ok := Combine(rule, runs)
		if !ok || [3]float64{f.PSNR, f.SSIM, f.Residual} != want {
			t.Errorf("%s: %+v, %t, want %v", rule, f, ok, want)
		}
	}
	if f, ok := Combine(Mean, runs[:1]); ok {
		t.Errorf("without a run that is done: %+v", f)
	}
}
