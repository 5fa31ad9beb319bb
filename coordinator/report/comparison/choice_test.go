package comparison_test

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"ddiff/coordinator/report/comparison"
	"ddiff/coordinator/report/reporttest"
	"ddiff/coordinator/report/selection"
	"ddiff/manifest"
)

// runsOf has one measurement with a run for each pair of PSNR and residual.
func runsOf(t *testing.T, name string, runs ...[2]float64) []manifest.Result {
	t.Helper()
	var out []manifest.Result
	for i, r := range runs {
		out = append(out, reporttest.Result(t, "phase_retrieval", "ddiff", name, i, reporttest.Scored(r[0], 10, r[0]/100, r[1])))
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
	c, err := comparison.Choose(reporttest.Stream(results), nil, 2, 1)
	reporttest.Must(t, err)
	if len(c.Groups) != 1 || c.Groups[0].Runs != 8 || c.Groups[0].LeftOut != 1 {
		t.Fatalf("%+v", c)
	}
	for _, want := range []struct {
		rule       selection.Rule
		good, psnr float64 // of a
	}{
		{selection.First, 2.0 / 4, 89.5 / 4},
		{selection.Mean, math.NaN(), 89.5 / 4},
		{selection.ClosestToNoise, 3.0 / 6, (3*20 + 2*29.5 + 30) / 6}, // 0 of {01,02,03}, 3 of {13,23}, 1 of {12}
		{selection.MinMisfit, 5.0 / 6, (3*30 + 2*29.5 + 20) / 6},      // 1 of {01,12,13}, 3 of {03,23}, 0 of {02}
		{selection.BestPSNR, 5.0 / 6, (3*30 + 2*29.5 + 20) / 6},
		{selection.BestSSIM, 5.0 / 6, (3*30 + 2*29.5 + 20) / 6},
	} {
		i := slices.IndexFunc(c.Groups[0].Rules, func(r comparison.RuleChoice) bool { return r.Rule == want.rule })
		r := c.Groups[0].Rules[i]
		if want.rule == selection.Mean {
			if r.Good.N != 0 {
				t.Errorf("%s picks no run, but has %+v", r.Rule, r.Good)
			}
		} else if !(math.Abs(r.Good.Mean-(want.good+1)/2) <= 1e-12) || r.Good.N != 2 {
			t.Errorf("%s: good %+v, want mean %g", r.Rule, r.Good, (want.good+1)/2)
		}
		if !(math.Abs(r.PSNR.Mean-(want.psnr+30)/2) <= 1e-12) || !(math.Abs(r.Gain.Mean-(want.psnr-89.5/4)/2) <= 1e-12) {
			t.Errorf("%s: PSNR %+v, gain %+v", r.Rule, r.PSNR, r.Gain)
		}
		if r.Oracle != (want.rule == selection.BestPSNR || want.rule == selection.BestSSIM) {
			t.Errorf("%s: oracle %t", r.Rule, r.Oracle)
		}
		// Half the interval of two images is 12.706 |a - b| / 2.
		if r.Rule == selection.MinMisfit && !(math.Abs(*r.PSNR.HalfWidth-12.7062047*(30-want.psnr)/2) <= 1e-6) {
			t.Errorf("%s: half-width %g", r.Rule, *r.PSNR.HalfWidth)
		}
	}
	var text bytes.Buffer
	reporttest.Must(t, c.WriteText(&text))
	reporttest.Golden(t, "choices.txt", text.Bytes())

	if _, err := comparison.Choose(reporttest.Stream(results), nil, 5, 1); !errors.Is(err, comparison.ErrNotComparable) || !strings.Contains(err.Error(), "no measurement has 5 finished runs") {
		t.Errorf("5 of 4 runs: error %v", err)
	}
	for _, within := range []float64{-1, math.NaN(), math.Inf(1)} {
		if _, err := comparison.Choose(reporttest.Stream(results), nil, 2, within); err == nil {
			t.Errorf("within %g dB is accepted", within)
		}
	}
	if _, err := comparison.Choose(reporttest.Stream(results), nil, 0, 1); err == nil {
		t.Error("a choice among 0 runs is accepted")
	}
}
