package queue

import (
	"testing"
	"time"
)

func TestRetryDelay(t *testing.T) {
	t.Parallel()
	q := &Queue{cfg: Config{RetryBase: time.Second}}
	for attempt, full := range map[int]time.Duration{
		1: time.Second, 2: 2 * time.Second, 6: 32 * time.Second, 7: time.Minute, 1000: time.Minute,
	} {
		seen := map[time.Duration]bool{}
		for range 100 {
			delay := (&Lease{q: q, attempt: attempt}).RetryDelay()
			if delay < full/2 || delay > full {
				t.Fatalf("delay %v after attempt %d, want %v to %v", delay, attempt, full/2, full)
			}
			seen[delay] = true
		}
		if len(seen) < 90 {
			t.Errorf("attempt %d: 100 leases have only %d delays", attempt, len(seen))
		}
	}
}
