package report

import (
	"fmt"
	"slices"
	"testing"

	"ddiff/coordinator/report/entry"
	"ddiff/coordinator/report/page"
	"ddiff/coordinator/report/reporttest"
	"ddiff/manifest"
)

// rows makes n finished items of a task; psnr may be nil.
func rows(task string, n int, psnr func(i int) float64) []manifest.Result {
	out := make([]manifest.Result, n)
	for i := range out {
		out[i].Outcome = manifest.OutcomeDone
		out[i].Item.Task, out[i].Item.Name = task, fmt.Sprintf("%s-%d", task, i)
		if psnr != nil {
			out[i].Metrics.PSNR = new(psnr(i))
		}
		out[i].Metrics.Residual = new(float64(i))
	}
	return out
}

// galleryOf adds the sorted results to a gallery.
func galleryOf(t *testing.T, results []manifest.Result, limit int) *page.Gallery {
	t.Helper()
	ordered, err := entry.Collect(reporttest.Stream(results), nil, false)
	reporttest.Must(t, err)
	g := &page.Gallery{Limit: limit}
	for e, err := range ordered.All() {
		reporttest.Must(t, err)
		g.Add(e)
	}
	return g
}

// excerpt returns the names of the items on a page of at most limit items.
func excerpt(t *testing.T, results []manifest.Result, limit int) []string {
	t.Helper()
	var out []string
	for _, e := range galleryOf(t, results, limit).Excerpt() {
		out = append(out, e.Name)
	}
	return out
}

func TestExcerptSelectsAllItemsWithinTheLimit(t *testing.T) {
	t.Parallel()
	results := append(rows("a", 3, nil), rows("b", 1, nil)...)
	results[1].Outcome = manifest.OutcomeFailed
	if got, want := excerpt(t, results, 3), []string{"a-0", "a-2", "b-0"}; !slices.Equal(got, want) {
		t.Errorf("excerpt = %q, want %q", got, want)
	}
}

func TestExcerptSelectsWorstAndFirst(t *testing.T) {
	t.Parallel()
	// Of task a the last rows are the worst by PSNR, of task b by residual.
	results := append(rows("a", 20, func(i int) float64 { return 40 - float64(i) }), rows("b", 20, nil)...)
	got := excerpt(t, results, 8)
	want := []string{"a-0", "a-1", "a-18", "a-19", "b-0", "b-1", "b-18", "b-19"}
	if !slices.Equal(got, want) {
		t.Errorf("excerpt = %q, want %q", got, want)
	}
}
