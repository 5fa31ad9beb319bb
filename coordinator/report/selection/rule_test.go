package selection

import (
	"errors"
	"math"
	"testing"

	"ddiff/coordinator/report/reporttest"
	"ddiff/restore/item"
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
	type m = item.Metrics
	nan := math.NaN()
	// Run 1 fits the measurement best, run 2 is closest to the truth.
	runs := []Scores{
		{Metrics: m{"psnr": 20, "ssim": 0.5, "residual": 0.010, "baseline_psnr": 15}, Seconds: 1},
		{Metrics: m{"psnr": 22, "ssim": 0.6, "residual": 0.001, "baseline_psnr": 15}, Seconds: 2},
		{Metrics: m{"psnr": 27, "ssim": 0.7, "residual": 0.004, "baseline_psnr": 15}, Seconds: 6},
	}
	tests := []struct {
		name string
		rule Rule
		runs []Scores
		want Scores
	}{
		{"first", First, runs, runs[0]},
		{"mean", Mean, runs, Scores{Metrics: m{"psnr": 23, "ssim": 0.6, "residual": 0.005, "baseline_psnr": 15}, Seconds: 3}},
		{"min_misfit pays for all runs", MinMisfit, runs, Scores{Metrics: m{"psnr": 22, "ssim": 0.6, "residual": 0.001, "baseline_psnr": 15}, Seconds: 9}},
		{"best_psnr pays for all runs", BestPSNR, runs, Scores{Metrics: m{"psnr": 27, "ssim": 0.7, "residual": 0.004, "baseline_psnr": 15}, Seconds: 9}},
		{"an overfitted run has the smaller misfit", MinMisfit,
			[]Scores{{Metrics: m{"residual": 0.001, "psnr": 1}}, {Metrics: m{"residual": -0.002, "psnr": 2}}}, Scores{Metrics: m{"residual": -0.002, "psnr": 2}}},
		{"an overfitted run is not closest to the noise", ClosestToNoise,
			[]Scores{{Metrics: m{"residual": -0.002, "psnr": 1}}, {Metrics: m{"residual": 0.001, "psnr": 2}}}, Scores{Metrics: m{"residual": 0.001, "psnr": 2}}},
		{"a misfit below the noise counts as one above", ClosestToNoise,
			[]Scores{{Metrics: m{"residual": 0.003, "psnr": 1}}, {Metrics: m{"residual": -0.002, "psnr": 2}}}, Scores{Metrics: m{"residual": -0.002, "psnr": 2}}},
		{"best_ssim pays for all runs", BestSSIM, runs, Scores{Metrics: m{"psnr": 27, "ssim": 0.7, "residual": 0.004, "baseline_psnr": 15}, Seconds: 9}},
		{"tie goes to the earlier run", MinMisfit,
			[]Scores{{Metrics: m{"residual": 0.1, "psnr": 1}}, {Metrics: m{"residual": 0.1, "psnr": 2}}}, Scores{Metrics: m{"residual": 0.1, "psnr": 1}}},
		{"undefined residual loses", MinMisfit,
			[]Scores{{Metrics: m{"residual": nan, "psnr": 1}}, {Metrics: m{"residual": 5, "psnr": 2}}}, Scores{Metrics: m{"residual": 5, "psnr": 2}}},
		{"oracle without truth keeps the first", BestPSNR,
			[]Scores{{Metrics: m{"psnr": nan, "residual": 1}}, {Metrics: m{"psnr": nan, "residual": 2}}}, Scores{Metrics: m{"psnr": nan, "residual": 1}}},
		{"mean of the defined values", Mean,
			[]Scores{{Metrics: m{"psnr": nan, "residual": 1}}, {Metrics: m{"psnr": 8, "residual": 2}}}, Scores{Metrics: m{"psnr": 8, "residual": 1.5}}},
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
				{"psnr", got.PSNR(), tt.want.PSNR()}, {"ssim", got.Of("ssim"), tt.want.Of("ssim")},
				{"residual", got.Of("residual"), tt.want.Of("residual")}, {"baseline", got.Baseline(), tt.want.Baseline()},
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
	runs := []item.Result{
		reporttest.Result(t, "hdr", "ddiff", "a", 0, reporttest.Ended(item.OutcomeFailed, "no such file")),
		reporttest.Result(t, "hdr", "ddiff", "a", 1, reporttest.Scored(25, 20, 0.75, 0.5)),
		reporttest.Result(t, "hdr", "ddiff", "a", 2, reporttest.Scored(28, 20, 0.25, 0.25)),
	}
	for rule, want := range map[Rule][3]float64{First: {25, 0.75, 0.5}, Mean: {26.5, 0.5, 0.375}, BestPSNR: {28, 0.25, 0.25}} {
		f, ok := CombineResults(rule, runs)
		if !ok || [3]float64{f.PSNR(), f.Of("ssim"), f.Of("residual")} != want {
			t.Errorf("%s: %+v, %t, want %v", rule, f, ok, want)
		}
	}
	if f, ok := CombineResults(Mean, runs[:1]); ok {
		t.Errorf("without a run that is done: %+v", f)
	}
}
