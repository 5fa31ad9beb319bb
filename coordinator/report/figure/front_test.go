package figure

import (
	"fmt"
	"slices"
	"testing"

	"ddiff/coordinator/report/aggregate"
	"ddiff/coordinator/report/statistic"
)

// The front has the best PSNR for each time, over all lines.
func TestFront(t *testing.T) {
	t.Parallel()
	line := func(values ...float64) *sweepLine {
		l := &sweepLine{}
		for pair := range slices.Chunk(values, 2) {
			l.rows = append(l.rows, &aggregate.Row{Seconds: statistic.Estimate{N: 1, Mean: pair[0]}, PSNR: statistic.Estimate{N: 1, Mean: pair[1]}})
		}
		return l
	}
	axis := sweepAxis{name: "seconds", value: func(r *aggregate.Row) float64 { return r.Seconds.Mean }}
	got := ""
	for _, p := range front([]*sweepLine{line(5, 30, 1, 20, 2, 19), line(3, 25, 5, 31, 1, 20, 4, 25)}, axis).Points {
		got += fmt.Sprintf("%g:%g ", p.X, p.Y)
	}
	if want := "1:20 3:25 5:31 "; got != want {
		t.Errorf("the front is %s, want %s", got, want)
	}
}
