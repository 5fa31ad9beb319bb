package gpuworker

import (
	"slices"
	"strings"
	"testing"

	"ddiff/manifest"
	"ddiff/restore/method"
	"ddiff/restore/parameter"
)

// TestWarnings marks doubtful results, each by one code, and no good one.
func TestWarnings(t *testing.T) {
	t.Parallel()
	e := engineOf(t)
	const side, sigma = 256, 0.05
	in := newAssigned(Assignment{Engine: e}, 1, nil, 0)
	base := planned(t, in, sampleItem(t, e, side, side))
	stripes := func(n int, contrast float32) []float32 {
		out := make([]float32, n)
		for i := range out {
			out[i] = contrast * float32(1-2*(i/16%2))
		}
		return out
	}
	p := func(v float64) *float64 { return &v }
	// 12288 entries of y: one standard deviation of their mean square is 1.3 % of sigma².
	for name, c := range map[string]struct {
		ratio          float64
		psnr, baseline *float64
		x, y           float32 // contrasts
		preset         string
		steps          int
		values         bool // those of the preset
		want           string
	}{
		"good":                    {1, p(25), p(24), 0.3, 0.3, "", 5, true, ""},
		"fits a part of noise":    {0.45, p(25), p(24), 0.3, 0.3, "", 5, true, ""},
		"little misfit":           {1.55, nil, nil, 0.3, 0.3, "", 5, true, ""},
		"misfit":                  {1.6, nil, nil, 0.3, 0.3, "", 5, true, "residual"},
		"fits the noise":          {0.1, nil, nil, 0.3, 0.3, "", 5, true, "residual"},
		"worse":                   {1, p(23.9), p(24), 0.3, 0.3, "", 5, true, "worse"},
		"no measured image":       {1, p(8), nil, 0.3, 0.3, "", 5, true, ""},
		"flat":                    {1, nil, nil, 0.05, 0.3, "", 5, true, "flat"},
		"as flat as y":            {1, nil, nil, 0.001, 0.06, "", 5, true, ""},
		"few steps of its preset": {1, nil, nil, 0.3, 0.3, "natural", 5, false, "steps"},
		"half of the steps":       {1, nil, nil, 0.3, 0.3, "natural", 50, false, ""},
		"preset of another prior": {1, nil, nil, 0.3, 0.3, "natural", 100, true, "preset"},
		"unknown preset":          {1, nil, nil, 0.3, 0.3, "of tomorrow", 5, true, ""},
		"all":                     {16, p(1), p(2), 0, 0.3, "natural", 5, true, "residual;worse;flat;steps;preset"},
	} {
		tk := &task{item: base.item, assigned: in, op: base.op, plan: base.plan}
		tk.item.Sigma, tk.item.Preset, tk.plan.Solver.Steps = sigma, c.preset, c.steps
		if !c.values {
			tk.plan.Solver = tk.plan.Solver.With("gamma0", parameter.Number(1))
		}
		tk.problem.Y, tk.solution.X = stripes(tk.op.MeasurementSize(), c.y), stripes(tk.op.Image.Size(), c.x)
		residual := (c.ratio - 1) * sigma * sigma
		tk.warn(manifest.Metrics{Residual: &residual, PSNR: c.psnr, BaselinePSNR: c.baseline})
		if got := manifest.WarningCodes(tk.warnings); got != c.want {
			t.Errorf("%s: warnings %q, want %q", name, got, c.want)
		}
		for _, w := range tk.warnings {
			if w.Text == "" || strings.Contains(w.Text, "\n") {
				t.Errorf("%s: text %q", name, w.Text)
			}
		}
	}
}

// TestPresetsOfPriors: only a preset with all its values is that of another prior.
func TestPresetsOfPriors(t *testing.T) {
	t.Parallel()
	e := engineOf(t)
	plan := planned(t, newAssigned(Assignment{Engine: e}, 1, nil, 0), sampleItem(t, e, 32, 32)).plan
	natural, err := e.Preset(plan, "natural", 0.05)
	if err != nil || !natural.Foreign || natural.Steps != 100 {
		t.Errorf("natural: %+v, %v", natural, err)
	}
	if ffhq, err := e.Preset(plan, "ffhq", 0.05); err != nil || ffhq.Foreign || ffhq.Steps != 1000 {
		t.Errorf("ffhq: %+v, %v", ffhq, err)
	}
	if !slices.Contains(method.Builtin().Presets(), "natural") {
		t.Error("the preset of the bundled prior has another name")
	}
}
