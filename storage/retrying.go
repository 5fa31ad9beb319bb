package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net"
	"time"

	"ddiff/internal/retry"
)

// RetryConfig configures Retrying. The zero value uses the defaults.
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

// Validate reports the first invalid field by name.
func (c RetryConfig) Validate() error {
	switch {
	case c.Attempts < 0:
		return fmt.Errorf("field Attempts: %d is negative", c.Attempts)
	case c.Base < 0:
		return fmt.Errorf("field Base: %v is negative", c.Base)
	case c.Max < 0:
		return fmt.Errorf("field Max: %v is negative", c.Max)
	}
	return nil
}

// Retrying wraps a store and retries calls that failed with ErrUnavailable or timed out, up to a number of attempts.
// It returns all other errors immediately.
//
// All attempts of a Create count as one call: if an S3 store wrote the object and the answer was lost, the next attempt
// succeeds instead of returning ErrExists. An attempt at a Put whose answer was lost may take effect after a later Put of
// another caller. A listing resumes after the last yielded object, which also resets the
// number of attempts.
type Retrying struct {
	around
	config RetryConfig
}

var _ Store = (*Retrying)(nil)

// NewRetrying wraps store.
func NewRetrying(store Store, config RetryConfig) (*Retrying, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("retrying store: %w", err)
	}
	config.Attempts = cmp.Or(config.Attempts, 6)
	config.Base = cmp.Or(config.Base, 200*time.Millisecond)
	config.Max = cmp.Or(config.Max, 10*time.Second)
	config.Logger = cmp.Or(config.Logger, slog.New(slog.DiscardHandler))
	if config.Sleep == nil {
		config.Sleep = retry.Sleep
	}
	r := &Retrying{config: config}
	r.around = around{store, r.try}
	return r, nil
}

// Create implements Store.
func (r *Retrying) Create(ctx context.Context, key string, data []byte) error {
	return r.around.Create(withAttempt(ctx), key, data)
}

// List implements Store.
func (r *Retrying) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		after, delays := "", retry.NewBackOff(r.config.Base, r.config.Max)
		for attempt := 1; ; attempt++ {
			var broken error
			for info, err := range listAfter(ctx, r.store, prefix, after) {
				if err != nil {
					broken = err
					break
				}
				if attempt = 1; !hasReplaced(info.Key) {
					after = info.Key
				}
				delays.Reset()
				if !yield(info, nil) {
					return
				}
			}
			if broken == nil {
				return
			}
			if err := r.wait(ctx, "list", prefix, attempt, delays.NextBackOff(), broken); err != nil {
				yield(Info{}, err)
				return
			}
		}
	}
}

// try runs call until it succeeds or wait returns an error.
func (r *Retrying) try(ctx context.Context, action, key string, call func() error) error {
	delays := retry.NewBackOff(r.config.Base, r.config.Max)
	for attempt := 1; ; attempt++ {
		err := call()
		if err == nil {
			return nil
		}
		if err := r.wait(ctx, action, key, attempt, delays.NextBackOff(), err); err != nil {
			return err
		}
	}
}

// wait waits for delay before the next attempt of a call that failed with err. It returns an error when the call must
// not be retried.
func (r *Retrying) wait(ctx context.Context, action, key string, attempt int, delay time.Duration, err error) error {
	if ctx.Err() != nil || !transient(err) {
		return err
	}
	if attempt >= r.config.Attempts {
		return fmt.Errorf("%w (attempt %d of %d)", err, attempt, r.config.Attempts)
	}
	r.config.Logger.WarnContext(ctx, "storage call failed, retrying",
		"action", action, "key", key, "attempt", attempt, "wait", delay, "error", err)
	if ended := r.config.Sleep(ctx, delay); ended != nil {
		return fmt.Errorf("%s %s: %w, after attempt %d: %w", action, key, ended, attempt, err)
	}
	return nil
}

func transient(err error) bool {
	var timeout net.Error
	return errors.Is(err, ErrUnavailable) || errors.As(err, &timeout) && timeout.Timeout()
}
