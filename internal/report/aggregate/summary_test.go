package aggregate_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/report/aggregate"
	"ddiff/internal/report/reporttest"
	"ddiff/internal/report/selection"
	"ddiff/restore/item"
	"ddiff/restore/operator"
)

func summaryOf(t *testing.T, results []item.Result, rule selection.Rule) aggregate.Summary {
	t.Helper()
	s, err := aggregate.Summarize(reporttest.Stream(results), nil, rule, nil)
	reporttest.Must(t, err)
	return s
}

func TestSummaryGolden(t *testing.T) {
	t.Parallel()
	for _, rule := range []selection.Rule{selection.First, selection.BestPSNR} {
		object, err := json.MarshalIndent(summaryOf(t, reporttest.TableResults(t), rule), "", "  ")
		reporttest.Must(t, err)
		reporttest.Golden(t, "summary_"+string(rule)+".json", append(object, '\n'))
	}
}

func TestSummarizeByHand(t *testing.T) {
	t.Parallel()
	s := summaryOf(t, reporttest.TableResults(t), selection.First)
	if s.Items != 12 || s.Done != 10 || s.Failed != 1 || s.Dead != 1 {
		t.Errorf("counts = %d items, %d done, %d failed, %d dead", s.Items, s.Done, s.Failed, s.Dead)
	}
	row := s.Rows[0]
	if row.Task != "gaussian_deblur" || row.Method != "ddiff" || row.Images != 2 || row.Items != 3 {
		t.Fatalf("first row = %+v", row)
	}
	// First runs 26 and 25: mean 25.5, s = 0.7071068, half = 12.7062047 * s / sqrt(2).
	if row.PSNR().Mean != 25.5 || !(math.Abs(*row.PSNR().HalfWidth-6.35310237) <= 1e-7) {
		t.Errorf("PSNR = %g ± %g", row.PSNR().Mean, *row.PSNR().HalfWidth)
	}
	if row.Means["gain"].Mean != 2 || row.Means["baseline_psnr"].Mean != 23.5 || !(math.Abs(row.Means["residual"].Mean-0.0012) <= 1e-15) {
		t.Errorf("gain %g, baseline %g, residual %g", row.Means["gain"].Mean, row.Means["baseline_psnr"].Mean, row.Means["residual"].Mean)
	}
	// Differences 26-22 = 4 and 25-23 = 2: mean 3, s = 1.4142136, half = 12.7062047.
	c := s.Comparisons[0]
	if len(s.Comparisons) != 1 || c.A != "ddiff" || c.B != "ddiff-hqs" || c.Refused != "" {
		t.Fatalf("comparisons = %+v", s.Comparisons)
	}
	if c.Difference.N != 2 || c.Difference.Mean != 3 || !(math.Abs(*c.Difference.HalfWidth-12.70620474) <= 1e-7) {
		t.Errorf("difference = %+v", c.Difference)
	}
}

func TestComparisonRefusesUnequalMeasurements(t *testing.T) {
	t.Parallel()
	otherSeed := func(r *item.Result) { r.Item.Seed++ }
	otherSolver := func(r *item.Result) { r.Item.Solver = json.RawMessage(`{"steps":50}`) }
	noTruth := func(r *item.Result) { delete(r.Metrics, "psnr") }
	score := reporttest.Scored(25, 20, 0.7, 0)
	tests := []struct {
		name    string
		results []item.Result
		n, out  int
		refused string
	}{
		{"same measurements", []item.Result{
			reporttest.Result(t, "hdr", "a", "1.png", 0, score), reporttest.Result(t, "hdr", "b", "1.png", 0, score),
		}, 1, 0, ""},
		{"runs of one side only", []item.Result{
			reporttest.Result(t, "hdr", "a", "1.png", 0, score), reporttest.Result(t, "hdr", "a", "1.png", 1, score),
			reporttest.Result(t, "hdr", "b", "1.png", 0, score),
		}, 1, 0, ""},
		{"other seed, same image", []item.Result{
			reporttest.Result(t, "hdr", "a", "1.png", 0, score), reporttest.Result(t, "hdr", "b", "1.png", 0, score, otherSeed),
		}, 0, 0, "different measurements: 1 of a, 1 of b, 0 in common"},
		{"one image more", []item.Result{
			reporttest.Result(t, "hdr", "a", "1.png", 0, score), reporttest.Result(t, "hdr", "a", "22.png", 0, score),
			reporttest.Result(t, "hdr", "b", "1.png", 0, score),
		}, 0, 0, "different measurements: 2 of a, 1 of b, 1 in common"},
		{"failed items are left out, not hidden", []item.Result{
			reporttest.Result(t, "hdr", "a", "1.png", 0, score), reporttest.Result(t, "hdr", "a", "22.png", 0, score),
			reporttest.Result(t, "hdr", "b", "1.png", 0, score), reporttest.Result(t, "hdr", "b", "22.png", 0, reporttest.Ended(item.OutcomeFailed, "x")),
		}, 1, 1, ""},
		{"two settings of one method", []item.Result{
			reporttest.Result(t, "hdr", "a", "1.png", 0, score), reporttest.Result(t, "hdr", "a", "1.png", 0, score, otherSolver),
		}, 1, 0, ""},
		{"no truth", []item.Result{
			reporttest.Result(t, "hdr", "a", "1.png", 0, noTruth), reporttest.Result(t, "hdr", "b", "1.png", 0, noTruth),
		}, 0, 1, "no measurement has a PSNR from both methods"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := summaryOf(t, tt.results, selection.First)
			if len(s.Comparisons) != 1 {
				t.Fatalf("comparisons = %+v", s.Comparisons)
			}
			c := s.Comparisons[0]
			if c.Difference.N != tt.n || c.LeftOut != tt.out || c.Refused != tt.refused {
				t.Errorf("n = %d, left out %d, refused %q; want %d, %d, %q",
					c.Difference.N, c.LeftOut, c.Refused, tt.n, tt.out, tt.refused)
			}
		})
	}
}

// The rows follow the order of the operators, and other tasks by name.
func TestRowsFollowTheOrderOfTheTasks(t *testing.T) {
	t.Parallel()
	var results []item.Result
	for _, task := range []string{"zoom", "hdr", "gaussian_deblur", "denoise"} {
		results = append(results, reporttest.Result(t, task, "ddiff", "a.png", 0))
	}
	own := operator.Set{{Name: "zoom", Label: "Zoom lens"}, {Name: "hdr", Label: "HDR"}}
	for want, tasks := range map[string]operator.Set{
		"Gaussian deblurring, High dynamic range, Denoising, zoom": nil, "Zoom lens, HDR, denoise, gaussian_deblur": own,
	} {
		s, err := aggregate.Summarize(reporttest.Stream(results), tasks, "", nil)
		reporttest.Must(t, err)
		var labels []string
		for i := range s.Rows {
			labels = append(labels, s.Rows[i].Label)
		}
		if got := strings.Join(labels, ", "); got != want {
			t.Errorf("order %q, want %q", got, want)
		}
	}
}

// TestNoiseSettingFollowsSigma: noise_std is no setting that varies where it is the noise level, as it is by default.
func TestNoiseSettingFollowsSigma(t *testing.T) {
	t.Parallel()
	of := func(noise ...float64) []string {
		var results []item.Result
		for k, sigma := range []float64{0.02, 0.05} {
			results = append(results, reporttest.Result(t, "hdr", "ddiff", "a", 0, reporttest.With(sigma, fmt.Sprintf(`{"steps":10,"noise_std":%g}`, noise[k]))))
		}
		var texts []string
		for _, r := range summaryOf(t, results, "").Rows {
			texts = append(texts, r.VaryingSettings)
		}
		return texts
	}
	if got := of(0.02, 0.05); !slices.Equal(got, []string{"", ""}) {
		t.Errorf("the noise level: %q", got)
	}
	if got := of(0.02, 0.1); !slices.Equal(got, []string{"noise_std=0.02", "noise_std=0.1"}) {
		t.Errorf("another level in a row: %q", got)
	}
}
