package entry

import (
	"math"
	"testing"

	"ddiff/coordinator/report/reporttest"
	"ddiff/manifest"
)

// TestRatioOfUnknownVariance: a result with photons and no variance has no ratio.
func TestRatioOfUnknownVariance(t *testing.T) {
	t.Parallel()
	r := reporttest.Result(t, "hdr", "ddiff", "a", 0, reporttest.Scored(20, 15, 0.5, 0.001), func(r *manifest.Result) { r.Item.Photons = 30 })
	e, err := newEntry(&r)
	if err != nil || !math.IsNaN(e.ResidualRatio()) {
		t.Errorf("ratio %v, %v", e.ResidualRatio(), err)
	}
}
