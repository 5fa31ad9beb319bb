package report

import (
	"errors"
	"math"
	"testing"

	"ddiff/manifest"
)

func TestParseRule(t *testing.T) {
	t.Parallel()
	for _, name := range manifest.Selections() {
		if r, err := ParseRule(string(name)); err != nil || string(r) != string(name) {
			t.Errorf("ParseRule(%q) = %q, %v", name, r, err)
		}
	}
	if len(Rules()) != len(manifest.Selections()) {
		t.Errorf("rules %v, selections of a campaign %v", Rules(), manifest.Selections())
	}
	if r, err := ParseRule("min_residual"); err != nil || r != RuleMinMisfit {
		t.Errorf("ParseRule of an earlier name = %q, %v, want %q", r, err, RuleMinMisfit)
	}
	if r, err := ParseRule(""); err != nil || r != RuleFirst {
		t.Errorf("ParseRule of nothing = %q, %v, want first", r, err)
	}
	if _, err := ParseRule("best"); !errors.Is(err, ErrUnknownRule) {
		t.Errorf("ParseRule(best) = %v, want ErrUnknownRule", err)
	}
}

func TestRuleCombine(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	// Run 1 fits the measurement best, run 2 is closest to the truth.
	runs := []scores{
		{PSNR: 20, SSIM: 0.5, Residual: 0.010, Baseline: 15, Seconds: 1},
		{PSNR: 22, SSIM: 0.6, Residual: 0.001, Baseline: 15, Seconds: 2},
		{PSNR: 27, SSIM: 0.7, Residual: 0.004, Baseline: 15, Seconds: 6},
	}
	tests := []struct {
		name string
		rule Rule
		runs []scores
		want scores
	}{
		{"first", RuleFirst, runs, runs[0]},
		{"mean", RuleMean, runs, scores{PSNR: 23, SSIM: 0.6, Residual: 0.005, Baseline: 15, Seconds: 3}},
		{"min_misfit pays for all runs", RuleMinMisfit, runs, scores{PSNR: 22, SSIM: 0.6, Residual: 0.001, Baseline: 15, Seconds: 9}},
		{"best_psnr pays for all runs", RuleBestPSNR, runs, scores{PSNR: 27, SSIM: 0.7, Residual: 0.004, Baseline: 15, Seconds: 9}},
		{"an overfitted run has the smaller misfit", RuleMinMisfit,
			[]scores{{Residual: 0.001, PSNR: 1}, {Residual: -0.002, PSNR: 2}}, scores{Residual: -0.002, PSNR: 2}},
		{"an overfitted run is not closest to the noise", RuleClosestToNoise,
			[]scores{{Residual: -0.002, PSNR: 1}, {Residual: 0.001, PSNR: 2}}, scores{Residual: 0.001, PSNR: 2}},
		{"a misfit below the noise counts as one above", RuleClosestToNoise,
			[]scores{{Residual: 0.003, PSNR: 1}, {Residual: -0.002, PSNR: 2}}, scores{Residual: -0.002, PSNR: 2}},
		{"best_ssim pays for all runs", RuleBestSSIM, runs, scores{PSNR: 27, SSIM: 0.7, Residual: 0.004, Baseline: 15, Seconds: 9}},
		{"tie goes to the earlier run", RuleMinMisfit,
			[]scores{{Residual: 0.1, PSNR: 1}, {Residual: 0.1, PSNR: 2}}, scores{Residual: 0.1, PSNR: 1}},
		{"undefined residual loses", RuleMinMisfit,
			[]scores{{Residual: nan, PSNR: 1}, {Residual: 5, PSNR: 2}}, scores{Residual: 5, PSNR: 2}},
		{"oracle without truth keeps the first", RuleBestPSNR,
			[]scores{{PSNR: nan, Residual: 1}, {PSNR: nan, Residual: 2}}, scores{PSNR: nan, Residual: 1}},
		{"mean of the defined values", RuleMean,
			[]scores{{PSNR: nan, Residual: 1}, {PSNR: 8, Residual: 2}}, scores{PSNR: 8, Residual: 1.5}},
		{"one run", RuleMinMisfit, runs[:1], runs[0]},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := tt.rule.combine(tt.runs)
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
		result(t, "hdr", "ddiff", "a", 0, ended(manifest.OutcomeFailed, "no such file")),
		result(t, "hdr", "ddiff", "a", 1, scored(25, 20, 0.75, 0.5)),
		result(t, "hdr", "ddiff", "a", 2, scored(28, 20, 0.25, 0.25)),
	}
	for rule, want := range map[Rule][3]float64{RuleFirst: {25, 0.75, 0.5}, RuleMean: {26.5, 0.5, 0.375}, RuleBestPSNR: {28, 0.25, 0.25}} {
		f, ok := Combine(rule, runs)
		if !ok || [3]float64{f.PSNR, f.SSIM, f.Residual} != want {
			t.Errorf("%s: %+v, %t, want %v", rule, f, ok, want)
		}
	}
	if f, ok := Combine(RuleMean, runs[:1]); ok {
		t.Errorf("without a run that is done: %+v", f)
	}
}
