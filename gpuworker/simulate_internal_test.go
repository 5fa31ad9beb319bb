package gpuworker

import (
	"math"
	"slices"
	"testing"
	"time"

	"ddiff/restore/noise"
)

func TestHistogramQuantilesAreWithinOnePercent(t *testing.T) {
	t.Parallel()
	draw := noise.NewStream(noise.NewKey([32]byte{1}), noise.Start)
	var h histogram
	if q := h.quantile(0.5); q != 0 {
		t.Errorf("quantile of an empty histogram is %v, want 0", q)
	}
	var all []time.Duration
	for range 100_000 {
		d := time.Duration(math.Exp(draw.Between(math.Log(1e4), math.Log(1e12)))) // 10 µs to 1000 s
		h.add(d)
		all = append(all, d)
	}
	slices.Sort(all)
	for _, q := range []float64{0, 0.01, 0.5, 0.99, 0.9999} {
		got, want := h.quantile(q), all[int(q*float64(len(all)))]
		if off := math.Abs(float64(got)/float64(want) - 1); !(off <= 0.01) {
			t.Errorf("quantile %g is %v, want %v within 1 %%", q, got, want)
		}
	}
	h.add(0)
	h.add(1000 * time.Hour) // outside the buckets
	if got := h.quantile(0); got > 2*time.Microsecond {
		t.Errorf("the smallest duration is %v, want about 1 µs", got)
	}
}
