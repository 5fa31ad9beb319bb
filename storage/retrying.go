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
func NewRetrying(store Store, config RetryConfig) *Retrying {
	config.Attempts = cmp.Or(config.Attempts, 6)
	config.Base = cmp.Or(config.Base, 200*time.Millisecond)
	config.Max = cmp.Or(config.Max, 10*time.Second)
	config.Logger = cmp.Or(config.Logger, slog.New(slog.DiscardHandler))
	if config.Sleep == nil {
		config.Sleep = retry.Sleep
	}
	r := &Retrying{config: config}
	r.around = around{store, func(ctx context.Context, o *operation) error {
		return r.try(ctx, o.name, o.key, func() error { return o.run(ctx, o.key) })
	}}
	return r
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

// resumable is a store that can start a listing after a key.
type resumable interface {
	// listAfter lists the keys after the given key.
	listAfter(ctx context.Context, prefix, after string) iter.Seq2[Info, error]
}

// listAfter lists the keys of any store after a key. It reads and skips the first part of a listing that is not
// resumable.
func listAfter(ctx context.Context, store Store, prefix, after string) iter.Seq2[Info, error] {
	if r, ok := store.(resumable); ok {
		return r.listAfter(ctx, prefix, after)
	}
	return func(yield func(Info, error) bool) {
		for info, err := range store.List(ctx, prefix) {
			if err == nil && info.Key <= after {
				continue
			}
			if !yield(info, err) {
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
