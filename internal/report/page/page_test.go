package page

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"ddiff/internal/report/aggregate"
	"ddiff/internal/report/entry"
	"ddiff/internal/report/reporttest"
	"ddiff/internal/report/selection"
	"ddiff/internal/restore/metric"
	"ddiff/restore/item"
)

func TestSharesUseAllPlaces(t *testing.T) {
	t.Parallel()
	for range 1000 {
		counts := make([]int, 1+rand.IntN(6))
		total, got, limit := 0, 0, rand.IntN(60)
		for i := range counts {
			counts[i] = rand.IntN(30)
			total += counts[i]
		}
		for i, n := range shares(counts, limit) {
			if n < 0 || n > counts[i] {
				t.Fatalf("shares(%v, %d)[%d] = %d", counts, limit, i, n)
			}
			got += n
		}
		if got > limit || total <= limit && got != total {
			t.Fatalf("shares(%v, %d) have %d of %d", counts, limit, got, total)
		}
	}
}

// TestCopiedAddsRestorationsOfShownMeasurements: the report of a large campaign copies the shown items and what they are
// compared with.
func TestCopiedAddsRestorationsOfShownMeasurements(t *testing.T) {
	t.Parallel()
	l := &Listing{ID: make([]string, 6), Measurement: []int{0, 1, 2, 0, 1, 2}}
	for limit, want := range map[int][]int{6: {1, 0, 2, 3, 4, 5}, 5: {1, 4}, 1: {1}} {
		if got := l.copied([]int{1}, limit); !slices.Equal(got, want) {
			t.Errorf("limit %d: rows %v, want %v", limit, got, want)
		}
	}
}

func TestCompareWorstIsAnOrder(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	scores := []map[string]float64{{"psnr": 10, "residual": nan}, {"psnr": 30, "residual": 9}, {"psnr": nan, "residual": 5}, {"psnr": nan, "residual": 1}, {"psnr": nan, "residual": nan}}
	for i := range scores {
		for j := range scores {
			want := 0
			if i != j {
				want = 1
				if i < j {
					want = -1
				}
			}
			if got := compareWorst(&entry.Entry{Figures: entry.NewFigures(scores[i])}, &entry.Entry{Figures: entry.NewFigures(scores[j])}); got != want {
				t.Errorf("compare(%d, %d) = %d, want %d", i, j, got, want)
			}
		}
	}
}

// TestMosaicSelectsTheMiddleOfEachPart: of the first row of a task in the table, and of the first run of each image, with the restorations
// by all methods.
func TestMosaicSelectsTheMiddleOfEachPart(t *testing.T) {
	t.Parallel()
	var results []item.Result
	for i := range 9 {
		for run := range 2 { // the second runs and the second method would win
			results = append(results,
				reporttest.Result(t, "hdr", "ddiff", fmt.Sprintf("img%d", i), run, reporttest.Scored(20+float64(i*5%9)+100*float64(run), 15, 0.5, 0)),
				reporttest.Result(t, "hdr", "diffpir", fmt.Sprintf("img%d", i), run, reporttest.Scored(50, 15, 0.5, 0)))
		}
		// Without a truth the largest residual comes first.
		results = append(results, reporttest.Result(t, "motion_deblur", "ddiff", fmt.Sprintf("img%d", i), 0, func(r *item.Result) { r.Metrics["residual"] = float64(i) }))
	}
	results = append(results, reporttest.Result(t, "inpaint_box", "ddiff", "only", 0))
	set, err := entry.Collect(reporttest.Stream(results), nil, selection.First, false)
	reporttest.Must(t, err)
	summary := aggregate.SummarizeEntries(set, nil, nil)
	l := NewListing(summary, metric.Builtin().Names(), MaxListed)
	for _, e := range set.Entries {
		l.Add(e)
	}
	got := make(map[string][]string)
	for _, r := range problemRows(l, true) {
		for _, item := range r.parts() {
			row := item[0]
			text := fmt.Sprintf("%s %.0f %.0f %d", l.Names[l.Name[row]], l.Figures["psnr"][row], l.Figures["residual"][row], l.Run[row])
			for k, other := range item[1:] {
				text += fmt.Sprintf(", %s of %s %.0f", l.Cells[r.approaches[k+1]].Method, l.Names[l.Name[other]], l.Figures["psnr"][other])
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
