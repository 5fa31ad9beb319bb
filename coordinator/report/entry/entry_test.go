package entry

import (
	"errors"
	"math"
	"strings"
	"testing"

	"ddiff/coordinator/report/reporttest"
	"ddiff/coordinator/report/result"
	"ddiff/restore/item"
)

// TestRatioOfUnknownVariance: a result with photons and no variance has no ratio.
func TestRatioOfUnknownVariance(t *testing.T) {
	t.Parallel()
	r := reporttest.Result(t, "hdr", "ddiff", "a", 0, reporttest.Scored(20, 15, 0.5, 0.001), func(r *item.Result) { r.Item.Photons = 30 })
	e, err := newEntry(&r)
	if err != nil || !math.IsNaN(e.ResidualRatio()) {
		t.Errorf("ratio %v, %v", e.ResidualRatio(), err)
	}
}

// TestCommonVersion names the remedy where two sides of a comparison lack a common version.
func TestCommonVersion(t *testing.T) {
	t.Parallel()
	side := func(items int, id string) *Columns {
		return &Columns{items: items, chosen: map[string]string{"psnr": id}}
	}
	for _, tt := range []struct {
		a, b *Columns
		want string
		err  string
	}{
		{side(1, "psnr@1"), side(2, "psnr@1"), "psnr@1", ""},
		{side(0, ""), side(2, "psnr@1"), "psnr@1", ""},
		{side(2, "psnr@1"), side(0, ""), "psnr@1", ""},
		{side(1, ""), side(1, ""), "", "no result has a score of psnr; compute it with ddiff score where there is a truth, or give another metric, such as residual"},
		{side(1, "psnr@1"), side(1, ""), "", "only one side has scores of psnr (psnr@1)"},
		{side(1, ""), side(1, "psnr@2"), "", "only one side has scores of psnr (psnr@2)"},
		{side(1, "psnr@1"), side(1, "psnr@2"), "", "A has psnr@1, B has psnr@2"},
	} {
		got, err := CommonVersion(tt.a, tt.b, "psnr")
		if got != tt.want || (err == nil) != (tt.err == "") || err != nil && (!errors.Is(err, result.ErrVersions) || !strings.Contains(err.Error(), tt.err)) {
			t.Errorf("%+v and %+v: %q, error %v", tt.a.chosen, tt.b.chosen, got, err)
		}
	}
}
