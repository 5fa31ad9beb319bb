package report

import (
	"path/filepath"
	"strings"
	"testing"

	"ddiff/coordinator/report/reporttest"
	"ddiff/coordinator/report/selection"
	"ddiff/manifest"
)

// A small report needs no temporary directory.
func TestTemporaryDirectory(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	store := reporttest.NewMemory()
	results := func(yield func(manifest.Result, error) bool) {
		r := manifest.Result{Item: manifest.Item{ID: "a", Name: "one", Task: "hdr", Method: "ddiff"}, Outcome: manifest.OutcomeFailed}
		yield(r, nil)
	}
	if _, err := Write(t.Context(), store, Campaign{Select: selection.First}, results); err != nil {
		t.Errorf("small report: %v", err)
	}
	if csv := string(store.Files[KeyCSV]); !strings.Contains(csv, "one") {
		t.Errorf("results.csv is %q", csv)
	}
}
