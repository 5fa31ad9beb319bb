package metric

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSSIMFilters: the code of the processor returns the bits of the reference, for all widths up to several groups of columns.
func TestSSIMFilters(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for width := windowSize; width < windowSize+20; width++ {
		s, want := newSSIMScratch(windowSize+2, width), newSSIMScratch(windowSize+2, width)
		for i := range s.x {
			s.x[i], s.y[i] = random.Float64(), random.Float64()
		}
		want.x, want.y = s.x, s.y
		for top := range 3 {
			s.filterDown(top, s.filterDownFast(top))
			want.filterDown(top, 0)
			for q := range s.down {
				s.filterAcross(s.across[q], s.down[q], s.filterAcrossFast(s.across[q], s.down[q]))
				want.filterAcross(want.across[q], want.down[q], 0)
				if !slices.Equal(s.down[q], want.down[q]) || !slices.Equal(s.across[q], want.across[q]) {
					t.Fatalf("width %d, row %d, sum %d: %v and %v, want %v and %v", width, top, q, s.down[q], s.across[q], want.down[q], want.across[q])
				}
			}
		}
	}
}
