package page

import (
	"fmt"
	"slices"
	"testing"

	"ddiff/coordinator/report/aggregate"
	"ddiff/coordinator/report/entry"
	"ddiff/coordinator/report/reporttest"
	"ddiff/coordinator/report/selection"
	"ddiff/manifest"
)

// TestMosaicSelectsTheMiddleOfEachPart: of the first row of a task in the table, and of the first run of each image, with the restorations
// by all methods.
func TestMosaicSelectsTheMiddleOfEachPart(t *testing.T) {
	t.Parallel()
	var results []manifest.Result
	for i := range 9 {
		for run := range 2 { // the second runs and the second method would win
			results = append(results,
				reporttest.Result(t, "hdr", "ddiff", fmt.Sprintf("img%d", i), run, reporttest.Scored(20+float64(i*5%9)+100*float64(run), 15, 0.5, 0)),
				reporttest.Result(t, "hdr", "diffpir", fmt.Sprintf("img%d", i), run, reporttest.Scored(50, 15, 0.5, 0)))
		}
		// Without a truth the largest residual comes first.
		results = append(results, reporttest.Result(t, "motion_deblur", "ddiff", fmt.Sprintf("img%d", i), 0, func(r *manifest.Result) { r.Metrics.Residual = new(float64(i)) }))
	}
	results = append(results, reporttest.Result(t, "inpaint_box", "ddiff", "only", 0))
	ordered, err := entry.Collect(reporttest.Stream(results), nil, false)
	reporttest.Must(t, err)
	summary, err := aggregate.SummarizeEntries(ordered, nil, selection.First, nil)
	reporttest.Must(t, err)
	l := NewListing(summary, nil, MaxListed)
	for e, err := range ordered.All() {
		reporttest.Must(t, err)
		l.Add(e)
	}
	got := make(map[string][]string)
	for _, r := range mosaicRows(l) {
		for _, item := range r.items {
			row := item[0]
			text := fmt.Sprintf("%s %.0f %.0f %d", l.Names[l.Name[row]], l.PSNR[row], l.Residual[row], l.Run[row])
			for k, other := range item[1:] {
				text += fmt.Sprintf(", %s of %s %.0f", l.Cells[r.approaches[k+1]].Method, l.Names[l.Name[other]], l.PSNR[other])
			}
			got[r.label] = append(got[r.label], text)
		}
	}
	for label, want := range map[string][]string{
		"High dynamic range": {"img4 22 0 0, diffpir of img4 50", "img3 26 0 0, diffpir of img3 50"}, // of 20 to 28
		"Motion deblurring":  {"img7 NaN 7 0", "img4 NaN 4 0", "img1 NaN 1 0"},
		"Inpainting (box)":   {"only NaN NaN 0"},
	} {
		if !slices.Equal(got[label], want) {
			t.Errorf("%s: %q, want %q", label, got[label], want)
		}
	}
}
