package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"ddiff/internal/retry"
)

// RetryConfig configures the retries of an S3. The zero value uses the defaults.
type RetryConfig struct {
	// Attempts is the maximum number of attempts of a call, including the first; 0 means 6.
	Attempts int
	// Base is the maximum wait before the second attempt. It doubles for each further attempt; a random part of
	// at most half is subtracted. 0 means 200 ms.
	Base time.Duration
	// Max limits the wait; 0 means 10 s.
	Max time.Duration
	// Sleep waits for d or for the end of ctx, whose error it returns; nil means real time.
	Sleep func(ctx context.Context, d time.Duration) error
	// Logger gets one warning per retry; nil means none.
	Logger *slog.Logger
}

func (c RetryConfig) withDefaults() RetryConfig {
	c.Attempts = cmp.Or(c.Attempts, 6)
	c.Base = cmp.Or(c.Base, 200*time.Millisecond)
	c.Max = cmp.Or(c.Max, 10*time.Second)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Sleep == nil {
		c.Sleep = retry.Sleep
	}
	return c
}

// try runs call until it succeeds, fails with another error than ErrUnavailable, or has used all attempts. It wraps the
// error with the action and the key.
func (s *S3) try(ctx context.Context, action, key string, call func() error) error {
	delays := retry.NewBackOff(s.retry.Base, s.retry.Max)
	for attempt := 1; ; attempt++ {
		err := s.slots.Acquire(ctx, 1)
		if err == nil {
			err = call()
			s.slots.Release(1)
		}
		err = failed(ctx, action, key, err)
		switch {
		case err == nil || ctx.Err() != nil || !errors.Is(err, ErrUnavailable):
			return err
		case attempt >= s.retry.Attempts:
			return fmt.Errorf("%w (attempt %d of %d)", err, attempt, s.retry.Attempts)
		}
		wait := delays.NextBackOff()
		s.retry.Logger.WarnContext(ctx, "storage call failed, retrying",
			"action", action, "key", key, "attempt", attempt, "wait", wait, "error", err)
		if ended := s.retry.Sleep(ctx, wait); ended != nil {
			return fmt.Errorf("%s %s: %w, after attempt %d: %w", action, key, ended, attempt, err)
		}
	}
}
