package operator

import (
	"testing"

	"ddiff/restore/operator/axis"
)

// The largest side is decomposed, and equal axes once.
func TestNewSVD(t *testing.T) {
	t.Parallel()
	mean := func(n int) *axis.Matrix { return axis.Fill(1, n, func(_, _ int) float64 { return 1 / float64(n) }) }
	if _, err := newSVD(mean(maxSVD), mean(8)); err != nil {
		t.Errorf("side %d: %v", maxSVD, err)
	}
	for width, want := range map[int]bool{8: true, 10: false} {
		left, right, err := decomposeAxes(mean(8), mean(width))
		if err != nil {
			t.Fatal(err)
		}
		if equal := left == right; equal != want {
			t.Errorf("8×%d: one decomposition for both axes is %v", width, equal)
		}
	}
}
