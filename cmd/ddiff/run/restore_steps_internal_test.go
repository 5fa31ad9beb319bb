package run

import "testing"

// TestStepCount counts the steps of four restorations, one of which is made again with fewer steps and one with more.
func TestStepCount(t *testing.T) {
	t.Parallel()
	s := stepCount{of: make([]int, 4)}
	for i, c := range []struct {
		places      []int
		steps, want int
	}{{[]int{0}, 72, 288}, {[]int{0}, 64, 72 + 3*64}, {[]int{1, 2}, 10, 72 + 10 + 10 + 10}, {[]int{2}, 20, 72 + 10 + 20 + 20}, {[]int{3}, 4, 72 + 10 + 20 + 4}} {
		if got := s.all(c.places, c.steps); got != c.want {
			t.Errorf("call %d: %d steps, want %d", i, got, c.want)
		}
	}
}
