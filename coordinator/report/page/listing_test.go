package page

import (
	"math/rand/v2"
	"slices"
	"testing"
)

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

// TestCopiedAddsRestorationsOfShownMeasurements: the report of a large campaign copies the shown items and what they are
// compared with.
func TestCopiedAddsRestorationsOfShownMeasurements(t *testing.T) {
	t.Parallel()
	l := &Listing{ID: make([]string, 6), Measurement: []int{0, 1, 2, 0, 1, 2}}
	for limit, want := range map[int][]int{6: {0, 1, 2, 3, 4, 5}, 5: {1, 4}, 1: {1}} {
		if got := l.copied([]int{1}, limit); !slices.Equal(got, want) {
			t.Errorf("limit %d: rows %v, want %v", limit, got, want)
		}
	}
}
