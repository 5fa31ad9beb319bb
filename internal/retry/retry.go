// Package retry holds the back-off that all packages share.
package retry

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// NewBackOff returns the delays between attempts: first, doubled after every attempt up to longest, each times a
// random factor from 1/2 to 1, so that callers that failed together do not return together. Reset starts over.
func NewBackOff(first, longest time.Duration) *backoff.ExponentialBackOff {
	// The library randomizes in both directions: 3/4 plus or minus a third of it is 1/2 to 1.
	return &backoff.ExponentialBackOff{
		InitialInterval: first - first/4, MaxInterval: longest - longest/4, Multiplier: 2, RandomizationFactor: 1. / 3,
	}
}

// Sleep waits for d. It returns the error of ctx when ctx ends earlier.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
