package page

import (
	"math"
	"testing"

	"ddiff/coordinator/report/entry"
	"ddiff/coordinator/report/selection"
)

func TestCompareWorstIsAnOrder(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	scores := []selection.Scores{{PSNR: 10, Residual: nan}, {PSNR: 30, Residual: 9}, {PSNR: nan, Residual: 5}, {PSNR: nan, Residual: 1}, {PSNR: nan, Residual: nan}}
	for i := range scores {
		for j := range scores {
			want := 0
			if i != j {
				want = 1
				if i < j {
					want = -1
				}
			}
			if got := compareWorst(&entry.Entry{Scores: scores[i]}, &entry.Entry{Scores: scores[j]}); got != want {
				t.Errorf("compare(%d, %d) = %d, want %d", i, j, got, want)
			}
		}
	}
}
