package run

import "testing"

// TestStepCount counts the steps of four restorations, one of which is made again, after its own steps.
func TestStepCount(t *testing.T) {
	t.Parallel()
	s := stepCount{of: make([]int, 4)}
	for i, c := range []struct {
		places              []int
		steps, before, want int
	}{{[]int{0}, 72, 0, 288}, {[]int{0}, 64, 72, 72 + 64 + 3*64}, {[]int{1, 2}, 10, 0, 136 + 10 + 10 + 10}, {[]int{2}, 20, 10, 136 + 10 + 30 + 20}, {[]int{3}, 4, 0, 136 + 10 + 30 + 4}} {
		if got := s.all(c.places, c.steps, c.before); got != c.want {
			t.Errorf("call %d: %d steps, want %d", i, got, c.want)
		}
	}
}
