package dataset

import (
	"context"
	"iter"
	"math/rand/v2"
	"time"
)

// The waits before the second and the last attempts.
const (
	firstWait = 200 * time.Millisecond
	lastWait  = 5 * time.Second
)

// attempts yields the wait before each of n attempts: none, then growing ones, of which at
// least half is waited.
func attempts(n int) iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		wait := time.Duration(0)
		for range n {
			if !yield(wait/2 + time.Duration(rand.Float64()*float64(wait)/2)) {
				return
			}
			wait = min(max(firstWait, 2*wait), lastWait)
		}
	}
}

// sleep waits for d or for the end of ctx, whose error it returns.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
