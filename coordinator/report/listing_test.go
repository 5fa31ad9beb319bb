package report

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ddiff/manifest"
)

// listingOf lists at most limit of the sorted results.
func listingOf(t *testing.T, results []manifest.Result, limit int) *listing {
	t.Helper()
	ordered, err := collect(stream(results), nil, false)
	if err != nil {
		t.Fatal(err)
	}
	l := newListing(summaryOf(t, results, RuleFirst), ordered.columns.extra, limit)
	for _, err := range l.watch(ordered.all()) {
		if err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func TestListingHoldsAllItems(t *testing.T) {
	t.Parallel()
	var results []manifest.Result
	for _, method := range []string{"ddiff", "ddiff-hqs"} {
		for i := range 3 {
			for run := range 2 {
				results = append(results, result(t, "hdr", method, fmt.Sprintf("img%d", i), run, scored(20+float64(i), 15, 0.5, 0.005)))
			}
		}
	}
	results = append(results, result(t, "hdr", "ddiff", "bad", 0, ended(manifest.OutcomeDead, "x")))
	rand.Shuffle(len(results), func(i, j int) { results[i], results[j] = results[j], results[i] })
	l := listingOf(t, results, maxListed)
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
			results = append(results, result(t, task, "ddiff", fmt.Sprintf("img%02d", i), 0))
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

func TestColumnIsJSON(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal(column{28.314159265, math.NaN(), math.Inf(1), -1e-9, 0})
	if want := `[28.31416,null,null,-1e-09,0]`; err != nil || string(data) != want {
		t.Errorf("%s, %v, want %s", data, err, want)
	}
}

// TestCopiedAddsRestorationsOfShownMeasurements: the report of a large campaign copies the shown items and what they are
// compared with.
func TestCopiedAddsRestorationsOfShownMeasurements(t *testing.T) {
	t.Parallel()
	l := &listing{ID: make([]string, 6), Measurement: []int{0, 1, 2, 0, 1, 2}}
	for limit, want := range map[int][]int{6: {0, 1, 2, 3, 4, 5}, 5: {1, 4}, 1: {1}} {
		if got := l.copied([]int{1}, limit); !slices.Equal(got, want) {
			t.Errorf("limit %d: rows %v, want %v", limit, got, want)
		}
	}
}

// pageItems decodes the page's table of items.
func pageItems(t *testing.T, page string) *listing {
	t.Helper()
	_, rest, _ := strings.Cut(page, `id="report-data">`)
	text, _, _ := strings.Cut(rest, "</script>")
	var data struct {
		Items struct {
			ID       []string
			Pictures []int
		}
	}
	if err := json.Unmarshal([]byte(text), &data); err != nil {
		t.Fatal(err)
	}
	return &listing{ID: data.Items.ID, Pictures: data.Items.Pictures}
}
