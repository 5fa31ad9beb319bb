package report

import (
	"errors"
	"math"
	"testing"
)

func TestParseRule(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"first", "mean", "min_residual", "best_psnr"} {
		if r, err := ParseRule(name); err != nil || string(r) != name {
			t.Errorf("ParseRule(%q) = %q, %v", name, r, err)
		}
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
		{psnr: 20, ssim: 0.5, residual: 0.010, baseline: 15, seconds: 1},
		{psnr: 22, ssim: 0.6, residual: 0.001, baseline: 15, seconds: 2},
		{psnr: 27, ssim: 0.7, residual: 0.004, baseline: 15, seconds: 6},
	}
	tests := []struct {
		name string
		rule Rule
		runs []scores
		want scores
	}{
		{"first", RuleFirst, runs, runs[0]},
		{"mean", RuleMean, runs, scores{23, 0.6, 0.005, 15, 3}},
		{"min_residual pays for all runs", RuleMinResidual, runs, scores{22, 0.6, 0.001, 15, 9}},
		{"best_psnr pays for all runs", RuleBestPSNR, runs, scores{27, 0.7, 0.004, 15, 9}},
		{"negative residual is smaller", RuleMinResidual,
			[]scores{{residual: 0.001, psnr: 1}, {residual: -0.002, psnr: 2}}, scores{residual: -0.002, psnr: 2}},
		{"tie goes to the earlier run", RuleMinResidual,
			[]scores{{residual: 0.1, psnr: 1}, {residual: 0.1, psnr: 2}}, scores{residual: 0.1, psnr: 1}},
		{"undefined residual loses", RuleMinResidual,
			[]scores{{residual: nan, psnr: 1}, {residual: 5, psnr: 2}}, scores{residual: 5, psnr: 2}},
		{"oracle without truth keeps the first", RuleBestPSNR,
			[]scores{{psnr: nan, residual: 1}, {psnr: nan, residual: 2}}, scores{psnr: nan, residual: 1}},
		{"mean of what is defined", RuleMean,
			[]scores{{psnr: nan, residual: 1}, {psnr: 8, residual: 2}}, scores{psnr: 8, residual: 1.5}},
		{"one run", RuleMinResidual, runs[:1], runs[0]},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := tt.rule.combine(tt.runs)
			for _, f := range []struct {
				name      string
				got, want float64
			}{
				{"psnr", got.psnr, tt.want.psnr}, {"ssim", got.ssim, tt.want.ssim},
				{"residual", got.residual, tt.want.residual}, {"baseline", got.baseline, tt.want.baseline},
				{"seconds", got.seconds, tt.want.seconds},
			} {
				if math.IsNaN(f.got) != math.IsNaN(f.want) || math.Abs(f.got-f.want) > 1e-12 {
					t.Errorf("%s = %g, want %g", f.name, f.got, f.want)
				}
			}
		})
	}
}
