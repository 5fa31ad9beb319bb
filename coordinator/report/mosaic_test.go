package report

import (
	"fmt"
	"strings"
	"testing"

	"ddiff/coordinator/report/reporttest"
	"ddiff/manifest"
)

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
