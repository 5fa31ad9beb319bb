package storage

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff is how long to wait before try number try, which counts from 1: base doubled for
// every try after the first, at most limit, of which a random half is left out so that
// callers that failed together do not return together. random gives numbers in [0, 1).
func backoff(try int, base, limit time.Duration, random func() float64) time.Duration {
	wait := base
	for i := 1; i < try && wait < limit; i++ {
		wait *= 2
	}
	wait = min(wait, limit)
	return wait/2 + time.Duration(random()*float64(wait/2))
}

// randomFloat is a random number in [0, 1).
func randomFloat() float64 { return rand.Float64() }

// sleep waits for d, or for the end of ctx, which is then the error.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
