package guard

import (
	"testing"
	"time"
)

// A worker passes an item five times, or sixty times while it has restored no item itself. Then it passes none for five minutes.
func TestPasses(t *testing.T) {
	t.Parallel()
	for proven, limit := range map[bool]int{true: 5, false: 60} {
		c := newStoppedClock()
		p := NewPasses(c.now)
		may := func(n int, want bool) {
			t.Helper()
			if p.May(n, proven) != want {
				t.Errorf("proven %t: an item may be passed after %d passes: %t", proven, n, !want)
			}
		}
		may(limit-1, true)
		may(limit, false)
		c.time = c.time.Add(5*time.Minute - 1)
		may(0, false)
		c.time = c.time.Add(1)
		may(limit-1, true)
	}
}

// An item returns if it was passed before, since the last pause.
func TestPassedItems(t *testing.T) {
	t.Parallel()
	p := NewPasses(time.Now)
	for round := range 2 {
		for i, id := range []string{"a", "b", "a"} {
			if again := p.Add(id); again != (i == 2) {
				t.Errorf("round %d: item %s was passed before: %t", round, id, again)
			}
		}
		p.Pause(0)
	}
}

// The pause doubles with the passes, and is random.
func TestPauseAfterPass(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]time.Duration{0: time.Second, 1: 2 * time.Second, 3: 8 * time.Second, maxPasses: 32 * time.Second, 20: 32 * time.Second} {
		p, least, most := NewPasses(time.Now), time.Hour, time.Duration(0)
		for range 400 {
			pause := p.Pause(n)
			least, most = min(least, pause), max(most, pause)
		}
		// 400 pauses leave a tenth of the range at either end with a probability of 1e-18.
		if low, high := want/2, 3*want/2; least < low || least > low+want/10 || most >= high || most < high-want/10 {
			t.Errorf("%d passes: pauses from %v to %v, want %v to %v", n, least, most, low, high)
		}
	}
}
