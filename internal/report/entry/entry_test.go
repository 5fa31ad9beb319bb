package entry

import (
	"errors"
	"math"
	"strings"
	"testing"

	"ddiff/internal/report/reporttest"
	"ddiff/internal/report/result"
	"ddiff/internal/report/selection"
	"ddiff/restore/item"
)

// TestRatioOfUnknownVariance: a result with photons and no variance has no ratio.
func TestRatioOfUnknownVariance(t *testing.T) {
	t.Parallel()
	r := reporttest.Result(t, "hdr", "ddiff", "a", 0, reporttest.Scored(20, 15, 0.5, 0.001), func(r *item.Result) { r.Item.Photons = 30 })
	s, err := Collect(reporttest.Stream([]item.Result{r}), nil, "", false)
	if err != nil || s.Entries[0].Of("residual") != 0.001 || !math.IsNaN(s.Entries[0].Of(Ratio)) {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestRuleCombine(t *testing.T) {
	t.Parallel()
	type m = map[string]float64
	nan := math.NaN()
	// Run 1 fits the measurement best, run 2 is closest to the truth.
	runs := []m{
		{"psnr": 20, "ssim": 0.5, "residual": 0.010, "baseline_psnr": 15, "seconds": 1},
		{"psnr": 22, "ssim": 0.6, "residual": 0.001, "baseline_psnr": 15, "seconds": 2},
		{"psnr": 27, "ssim": 0.7, "residual": 0.004, "baseline_psnr": 15, "seconds": 6},
	}
	tests := []struct {
		name string
		rule selection.Rule
		runs []m
		want m
	}{
		{"first", selection.First, runs, runs[0]},
		{"mean", selection.Mean, runs, m{"psnr": 23, "ssim": 0.6, "residual": 0.005, "baseline_psnr": 15, "seconds": 3}},
		{"min_misfit pays for all runs", selection.MinMisfit, runs, m{"psnr": 22, "ssim": 0.6, "residual": 0.001, "baseline_psnr": 15, "seconds": 9}},
		{"best_psnr pays for all runs", selection.BestPSNR, runs, m{"psnr": 27, "ssim": 0.7, "residual": 0.004, "baseline_psnr": 15, "seconds": 9}},
		{"an overfitted run has the smaller misfit", selection.MinMisfit,
			[]m{{"residual": 0.001, "psnr": 1}, {"residual": -0.002, "psnr": 2}}, m{"residual": -0.002, "psnr": 2}},
		{"an overfitted run is not closest to the noise", selection.ClosestToNoise,
			[]m{{"residual": -0.002, "psnr": 1}, {"residual": 0.001, "psnr": 2}}, m{"residual": 0.001, "psnr": 2}},
		{"a misfit below the noise counts as one above", selection.ClosestToNoise,
			[]m{{"residual": 0.003, "psnr": 1}, {"residual": -0.002, "psnr": 2}}, m{"residual": -0.002, "psnr": 2}},
		{"best_ssim pays for all runs", selection.BestSSIM, runs, m{"psnr": 27, "ssim": 0.7, "residual": 0.004, "baseline_psnr": 15, "seconds": 9}},
		{"tie goes to the earlier run", selection.MinMisfit,
			[]m{{"residual": 0.1, "psnr": 1}, {"residual": 0.1, "psnr": 2}}, m{"residual": 0.1, "psnr": 1}},
		{"undefined residual loses", selection.MinMisfit,
			[]m{{"residual": nan, "psnr": 1}, {"residual": 5, "psnr": 2}}, m{"residual": 5, "psnr": 2}},
		{"oracle without truth keeps the first", selection.BestPSNR,
			[]m{{"psnr": nan, "residual": 1}, {"psnr": nan, "residual": 2}}, m{"psnr": nan, "residual": 1}},
		{"mean of the defined values", selection.Mean,
			[]m{{"psnr": nan, "residual": 1}, {"psnr": 8, "residual": 2}}, m{"psnr": 8, "residual": 1.5}},
		{"one run", selection.MinMisfit, runs[:1], runs[0]},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var runs []*Entry
			for _, figures := range tt.runs {
				runs = append(runs, &Entry{Figures: NewFigures(figures)})
			}
			got, want := Combine(tt.rule, runs), NewFigures(tt.want)
			for _, name := range []string{"psnr", "ssim", "residual", Baseline, Gain, Seconds} {
				if g, w := got.Of(name), want.Of(name); math.IsNaN(g) != math.IsNaN(w) || math.Abs(g-w) > 1e-12 {
					t.Errorf("%s = %g, want %g", name, g, w)
				}
			}
		})
	}
}

// TestCommonVersion names the remedy where two sides of a comparison lack a common version.
func TestCommonVersion(t *testing.T) {
	t.Parallel()
	side := func(items int, id string) *Columns {
		return &Columns{items: items, chosen: map[string]string{"psnr": id}}
	}
	for _, tt := range []struct {
		a, b *Columns
		want string
		err  string
	}{
		{side(1, "psnr@1"), side(2, "psnr@1"), "psnr@1", ""},
		{side(0, ""), side(2, "psnr@1"), "psnr@1", ""},
		{side(2, "psnr@1"), side(0, ""), "psnr@1", ""},
		{side(1, ""), side(1, ""), "", "no result has a score of psnr; compute it with ddiff score where there is a truth, or give another metric, such as residual"},
		{side(1, "psnr@1"), side(1, ""), "", "only one side has scores of psnr (psnr@1)"},
		{side(1, ""), side(1, "psnr@2"), "", "only one side has scores of psnr (psnr@2)"},
		{side(1, "psnr@1"), side(1, "psnr@2"), "", "A has psnr@1, B has psnr@2"},
	} {
		got, err := CommonVersion(tt.a, tt.b, "psnr")
		if got != tt.want || (err == nil) != (tt.err == "") || err != nil && (!errors.Is(err, result.ErrVersions) || !strings.Contains(err.Error(), tt.err)) {
			t.Errorf("%+v and %+v: %q, error %v", tt.a.chosen, tt.b.chosen, got, err)
		}
	}
}
