package report

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ddiff/coordinator/report/entry"
	"ddiff/coordinator/report/page"
	"ddiff/coordinator/report/reporttest"
	"ddiff/coordinator/report/selection"
	"ddiff/manifest"
)

// listingOf lists at most limit of the sorted results.
func listingOf(t *testing.T, results []manifest.Result, limit int) *page.Listing {
	t.Helper()
	ordered, err := entry.Collect(reporttest.Stream(results), nil, false)
	reporttest.Must(t, err)
	l := page.NewListing(summaryOf(t, results, selection.First), ordered.Columns.Extra, limit)
	for _, err := range l.Watch(ordered.All()) {
		reporttest.Must(t, err)
	}
	return l
}

func TestListingHoldsAllItems(t *testing.T) {
	t.Parallel()
	var results []manifest.Result
	for _, method := range []string{"ddiff", "ddiff-hqs"} {
		for i := range 3 {
			for run := range 2 {
				results = append(results, reporttest.Result(t, "hdr", method, fmt.Sprintf("img%d", i), run, reporttest.Scored(20+float64(i), 15, 0.5, 0.005)))
			}
		}
	}
	results = append(results, reporttest.Result(t, "hdr", "ddiff", "bad", 0, reporttest.Ended(manifest.OutcomeDead, "x")))
	rand.Shuffle(len(results), func(i, j int) { results[i], results[j] = results[j], results[i] })
	l := listingOf(t, results, page.MaxListed)
	if len(l.ID) != 12 || len(l.Names) != 3 || len(l.Cells) != 2 || len(l.Hows) != 2 { // with a cost and without
		t.Fatalf("%d items, %d names, %d cells, %d hows", len(l.ID), len(l.Names), len(l.Cells), len(l.Hows))
	}
	// Two runs of each method share a measurement.
	if want := []int{0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2}; !slices.Equal(l.Measurement, want) {
		t.Errorf("measurements = %v, want %v", l.Measurement, want)
	}
	if l.PSNR[2] != 21 || !(math.Abs(l.Ratio[2]-3) <= 1e-12) || l.Run[3] != 1 { // 0.005/0.05² + 1
		t.Errorf("PSNR %v, ratio %v, run %d", l.PSNR[2], l.Ratio[2], l.Run[3])
	}
}

func TestListingSharesItsPlaces(t *testing.T) {
	t.Parallel()
	var results []manifest.Result
	for task, n := range map[string]int{"a": 30, "b": 3, "c": 40} {
		for i := range n {
			results = append(results, reporttest.Result(t, task, "ddiff", fmt.Sprintf("img%02d", i), 0))
		}
	}
	l := listingOf(t, results, 30)
	counts := make(map[string]int)
	for row := range l.ID {
		counts[l.Cells[l.Cell[row]].Task]++
	}
	if counts["a"] != 10 || counts["b"] != 3 || counts["c"] != 17 {
		t.Errorf("items = %v, want a 10, b 3, c 17", counts)
	}
}

// pageItems decodes the page's table of items.
func pageItems(t *testing.T, index string) *page.Listing {
	t.Helper()
	_, rest, _ := strings.Cut(index, `id="report-data">`)
	text, _, _ := strings.Cut(rest, "</script>")
	var data struct {
		Items struct {
			ID       []string
			Pictures []int
		}
	}
	reporttest.Must(t, json.Unmarshal([]byte(text), &data))
	return &page.Listing{ID: data.Items.ID, Pictures: data.Items.Pictures}
}
