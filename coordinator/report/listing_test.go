package report

import (
	"encoding/json"
	"fmt"
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
	for e, err := range ordered.All() {
		reporttest.Must(t, err)
		l.Add(e)
	}
	return l
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
