package entry

import (
	"fmt"
	"slices"
	"testing"

	"ddiff/coordinator/report/reporttest"
)

// TestSorterMergesRuns compares sorting with runs of three entries to sorting in memory.
func TestSorterMergesRuns(t *testing.T) {
	t.Parallel()
	results := append(reporttest.TableResults(t), reporttest.Result(t, "hdr", "ddiff", "z", 0, reporttest.Later("lpips_vgg@1:aaaaaaaa", 0.2)))
	var got [2][]string
	for i, limit := range []int{maxSorted, 3} {
		s, err := collectIn(reporttest.Stream(results), nil, false, limit)
		reporttest.Must(t, err)
		if want := 4 * i; len(s.ends) != want {
			t.Fatalf("limit %d: %d runs in the file, want %d", limit, len(s.ends), want)
		}
		for range 2 { // each iteration begins anew
			for e, err := range s.All() {
				reporttest.Must(t, err)
				got[i] = append(got[i], fmt.Sprintf("%+v", *e))
			}
		}
		reporttest.Must(t, s.Close())
	}
	if !slices.Equal(got[0], got[1]) || len(got[0]) != 2*len(results) {
		t.Errorf("in memory: %q\nmerged: %q", got[0], got[1])
	}
}
