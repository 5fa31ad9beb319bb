package queue

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Config describes a campaign's queue. Open stores AckWait and MaxAttempts on the server; Attach ignores its own values
// and adopts the stored ones.
type Config struct {
	// Campaign is the campaign's name, 1 to MaxNameBytes bytes. Campaigns are isolated from each other.
	Campaign string
	// AckWait is the duration of a lease without an Extend. Default 30 s.
	AckWait time.Duration
	// MaxAttempts is the number of attempts at an item, at least 1. Default 3.
	MaxAttempts int
	// Replicas is the number of servers that store each message of a stream that Open creates, 1 to 5; Setup changes it
	// for existing streams. Default 1.
	Replicas int
	// RetryBase is the longest delay after the first attempt, see Lease.RetryDelay. Default 1 s.
	RetryBase time.Duration
	// Timeout limits the retries of a call while the server does not answer; the call then returns ErrUnavailable.
	// Default 30 s.
	Timeout time.Duration
	// Now is the clock of timestamps in dead letters and spans. Default time.Now.
	Now func() time.Time
	// Logger receives problems that no error reports. Default: no log.
	Logger *slog.Logger
	// Tracer receives the spans of publishing, leasing and settling. Default: no spans; the caller's trace context
	// still travels with the items.
	Tracer trace.Tracer
}

// WithDefaults returns c with every zero field set to its default.
func (c Config) WithDefaults() Config {
	c.AckWait = cmp.Or(c.AckWait, 30*time.Second)
	c.MaxAttempts = cmp.Or(c.MaxAttempts, 3)
	c.Replicas = cmp.Or(c.Replicas, 1)
	c.RetryBase = cmp.Or(c.RetryBase, time.Second)
	c.Timeout = cmp.Or(c.Timeout, defaultTimeout)
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	c.Tracer = cmp.Or(c.Tracer, noop.NewTracerProvider().Tracer(""))
	return c
}

// Validate reports the first field that is out of range, after defaults are applied. The error wraps ErrConfig, or
// ErrBadName for the campaign.
func (c Config) Validate() error {
	c = c.WithDefaults()
	if _, err := token("Campaign", c.Campaign); err != nil {
		return err
	}
	switch {
	case c.AckWait < 10*time.Millisecond:
		return fmt.Errorf("%w: AckWait is %v, at least 10ms is needed", ErrConfig, c.AckWait)
	case c.MaxAttempts < 1:
		return fmt.Errorf("%w: MaxAttempts is %d, at least 1 is needed", ErrConfig, c.MaxAttempts)
	case c.Replicas < 1 || c.Replicas > 5:
		return fmt.Errorf("%w: Replicas is %d, 1 to 5 are allowed", ErrConfig, c.Replicas)
	case c.Timeout < 0:
		return fmt.Errorf("%w: Timeout is %v, it must not be negative", ErrConfig, c.Timeout)
	}
	return nil
}
