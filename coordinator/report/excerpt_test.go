package report

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"ddiff/manifest"
)

// rows makes n finished items of a task; psnr may be nil.
func rows(task string, n int, psnr func(i int) float64) []manifest.Result {
	out := make([]manifest.Result, n)
	for i := range out {
		out[i].Outcome = manifest.OutcomeDone
		out[i].Item.Task, out[i].Item.Name = task, fmt.Sprintf("%s-%d", task, i)
		if psnr != nil {
			out[i].Metrics.PSNR = ptr(psnr(i))
		}
		out[i].Metrics.Residual = ptr(float64(i))
	}
	return out
}

func names(results []manifest.Result) []string {
	var out []string
	for _, r := range results {
		out = append(out, r.Item.Name)
	}
	return out
}

func TestExcerptKeepsAllThatFit(t *testing.T) {
	t.Parallel()
	results := append(rows("a", 3, nil), rows("b", 1, nil)...)
	results[1].Outcome = manifest.OutcomeFailed
	if got, want := names(excerpt(results, 3)), []string{"a-0", "a-2", "b-0"}; !slices.Equal(got, want) {
		t.Errorf("excerpt = %q, want %q", got, want)
	}
}

func TestExcerptTakesWorstAndFirst(t *testing.T) {
	t.Parallel()
	// Of task a the last rows are the worst by PSNR, of task b by residual.
	results := append(rows("a", 20, func(i int) float64 { return 40 - float64(i) }), rows("b", 20, nil)...)
	got := names(excerpt(results, 8))
	want := []string{"a-0", "a-1", "a-18", "a-19", "b-0", "b-1", "b-18", "b-19"}
	if !slices.Equal(got, want) {
		t.Errorf("excerpt = %q, want %q", got, want)
	}
}

func TestExcerptPassesOnUnusedShare(t *testing.T) {
	t.Parallel()
	results := append(rows("a", 1, nil), rows("b", 30, nil)...)
	if got := len(excerpt(results, 10)); got != 10 {
		t.Errorf("%d items, want 10", got)
	}
	var many []manifest.Result
	for i := range 50 {
		many = append(many, rows(fmt.Sprintf("t%02d", i), 2, nil)...)
	}
	if got := len(excerpt(many, 10)); got != 10 {
		t.Errorf("%d items of 50 tasks, want 10", got)
	}
}

func TestCompareWorstIsAnOrder(t *testing.T) {
	t.Parallel()
	metrics := []manifest.Metrics{
		{PSNR: ptr(10)}, {PSNR: ptr(30), Residual: ptr(9)}, {PSNR: ptr(math.NaN()), Residual: ptr(5)},
		{Residual: ptr(1)}, {},
	}
	for i := range metrics {
		for j := range metrics {
			want := 0
			if i != j {
				want = 1
				if i < j {
					want = -1
				}
			}
			if got := compareWorst(&metrics[i], &metrics[j]); got != want {
				t.Errorf("compare(%d, %d) = %d, want %d", i, j, got, want)
			}
		}
	}
}
