package dataset

import (
	"context"
	"errors"
	"time"

	"ddiff/internal/retry"
)

// The maximum delays before the second attempt and before any attempt.
const (
	firstWait = 200 * time.Millisecond
	lastWait  = 5 * time.Second
)

// retryRead calls read up to n times, with growing delays, while its error is transient.
func retryRead[T any](ctx context.Context, n int, transient error, read func() (T, error)) (data T, err error) {
	delays := retry.NewBackOff(firstWait, lastWait)
	for attempt := 1; ; attempt++ {
		if data, err = read(); attempt >= n || !errors.Is(err, transient) {
			return data, err
		}
		if err := retry.Sleep(ctx, delays.NextBackOff()); err != nil {
			return data, err
		}
	}
}
