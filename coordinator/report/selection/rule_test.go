package selection

import (
	"errors"
	"math"
	"testing"

	"ddiff/coordinator/report/reporttest"
	"ddiff/manifest"
)

func TestParseRule(t *testing.T) {
	t.Parallel()
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
			got := Combine(tt.rule, tt.runs)
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

// TestCombineResults has three runs of a measurement, of which one has failed.
func TestCombineResults(t *testing.T) {
	t.Parallel()
	runs := []manifest.Result{
		reporttest.Result(t, "hdr", "ddiff", "a", 0, reporttest.Ended(manifest.OutcomeFailed, "no such file")),
		reporttest.Result(t, "hdr", "ddiff", "a", 1, reporttest.Scored(25, 20, 0.75, 0.5)),
		reporttest.Result(t, "hdr", "ddiff", "a", 2, reporttest.Scored(28, 20, 0.25, 0.25)),
	}
	for rule, want := range map[Rule][3]float64{First: {25, 0.75, 0.5}, Mean: {26.5, 0.5, 0.375}, BestPSNR: {28, 0.25, 0.25}} {
		f, ok := CombineResults(rule, runs)
		if !ok || [3]float64{f.PSNR, f.SSIM, f.Residual} != want {
			t.Errorf("%s: %+v, %t, want %v", rule, f, ok, want)
		}
	}
	if f, ok := CombineResults(Mean, runs[:1]); ok {
		t.Errorf("without a run that is done: %+v", f)
	}
}
