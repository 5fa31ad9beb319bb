package report

import (
	"bytes"
	"fmt"
	"image/png"
	"strings"
	"testing"

	"ddiff/coordinator/report/page"
	"ddiff/coordinator/report/reporttest"
	"ddiff/manifest"
)

func TestMosaicStatesItsRule(t *testing.T) {
	t.Parallel()
	store := reporttest.NewMemory()
	results := campaign(t, store)
	file, lost, err := page.WriteMosaic(t.Context(), store, listingOf(t, results, page.MaxListed))
	if err != nil || len(lost) != 0 {
		t.Fatal(err, lost)
	}
	img, err := png.Decode(bytes.NewReader(store.Files[KeyMosaic]))
	if err != nil || img.Bounds().Dx() != file.Width || img.Bounds().Dy() != file.Height {
		t.Fatalf("picture %v, want %dx%d, %v", img.Bounds(), file.Width, file.Height, err)
	}
	if !strings.Contains(file.Rule, "middle image of each third") || !strings.Contains(file.Rule, "first row") || strings.Contains(file.Rule, "runs") {
		t.Errorf("rule %q", file.Rule)
	}
	// A page at 300 dots per inch.
	if file.Width < 1800 || file.Width > 2400 || file.Height > 3000 {
		t.Errorf("the mosaic has %dx%d pixels", file.Width, file.Height)
	}
}

// TestMosaicIsBounded: more tasks than rows are counted, and a report without finished items leaves no mosaic.
func TestMosaicIsBounded(t *testing.T) {
	t.Parallel()
	store := reporttest.NewMemory()
	var results []manifest.Result
	for i := range 12 + 3 {
		results = append(results, reporttest.Result(t, fmt.Sprintf("task with a very long name %d", i), "ddiff", "a", 0))
	}
	if _, err := Write(t.Context(), store, testCampaign(), reporttest.Stream(results)); err != nil {
		t.Fatal(err)
	}
	if index := string(store.Files[KeyPage]); !strings.Contains(index, "3 more tasks are in the contact sheets") || store.Files[KeyMosaic] == nil {
		t.Error("the page does not count the other tasks")
	}
	if _, err := Write(t.Context(), store, testCampaign(), reporttest.Stream(nil)); err != nil {
		t.Fatal(err)
	}
	if store.Files[KeyMosaic] != nil || strings.Contains(string(store.Files[KeyPage]), KeyMosaic) {
		t.Error("the mosaic of the earlier report is left")
	}
}
