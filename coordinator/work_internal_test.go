package coordinator

import (
	"testing"
	"time"
)

// The queue of a campaign that waits is checked every few ticks, less often among many, and one that lacks items at each.
func TestQuietQueue(t *testing.T) {
	t.Parallel()
	var q work
	for tick, tt := range []struct{ waits, want bool }{
		{true, true}, {true, true}, {true, true}, {true, true}, {true, false}, {true, true}, {false, false}, {true, true}, {true, true}, {true, true}, {true, true}, {true, false},
	} {
		if got := q.quiet(tt.waits, 1); got != tt.want {
			t.Errorf("tick %d: quiet %t", tick, got)
		}
	}
	many, checks := work{}, 0
	for range 100 * quietTicks {
		if !many.quiet(true, 10*quietTicks*tickChecks) {
			checks++
		}
	}
	if checks != 10 {
		t.Errorf("%d checks of one of many campaigns, want a tenth of 100", checks)
	}
	now := time.Unix(1e9, 0)
	for i, tt := range []struct {
		held int
		want time.Duration
	}{{4, 0}, {3, 0}, {3, time.Second}, {0, 2 * time.Second}, {5, 0}, {3, 0}} {
		now = now.Add(time.Second)
		if got := q.lacks(tt.held, 4, now); got != tt.want {
			t.Errorf("check %d: lacks items for %v, want %v", i, got, tt.want)
		}
		if q.quiet(true, 1) == (tt.held < 4) {
			t.Errorf("check %d: quiet is %t", i, tt.held < 4)
		}
	}
}
