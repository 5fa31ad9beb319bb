package queue

import (
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Config describes a campaign's queue. Open sets AckWait, MaxAttempts and the retry delays for
// all that Attach later; for Attach they say nothing.
type Config struct {
	// Campaign names the campaign, 1 to MaxNameBytes bytes. Campaigns do not see each
	// other's messages.
	Campaign string
	// AckWait is how long a lease lasts without an Extend. Default 30 s.
	AckWait time.Duration
	// MaxAttempts is how often an item is tried, at least 1. Default 3.
	MaxAttempts int
	// Replicas is the number of servers that hold each message of a stream that Open has to
	// create, 1 to 5; Setup changes it. Default 1.
	Replicas int
	// RetryBase and RetryMax are the pause after the first attempt and the longest one,
	// see Lease.RetryDelay. Defaults 1 s and 60 s.
	RetryBase, RetryMax time.Duration
	// Patience is how long a call goes on while the server does not answer, before it
	// returns ErrUnavailable. Default 30 s.
	Patience time.Duration
	// Now is the clock of the timestamps in dead letters and spans. Default time.Now.
	Now func() time.Time
	// Logger takes what goes wrong besides the returned errors. Default: nothing is logged.
	Logger *slog.Logger
	// Tracer takes the spans of publishing, leasing and settling. Default: none are made,
	// and the trace context of the caller travels as it is.
	Tracer trace.Tracer
}

// WithDefaults returns c with every zero field set to its default.
func (c Config) WithDefaults() Config {
	if c.AckWait == 0 {
		c.AckWait = 30 * time.Second
	}
	if c.MaxAttempts == 0 {
		c.MaxAttempts = 3
	}
	if c.Replicas == 0 {
		c.Replicas = 1
	}
	if c.RetryBase == 0 {
		c.RetryBase = time.Second
	}
	if c.RetryMax == 0 {
		c.RetryMax = max(time.Minute, c.RetryBase)
	}
	if c.Patience == 0 {
		c.Patience = defaultPatience
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Tracer == nil {
		c.Tracer = noop.NewTracerProvider().Tracer("")
	}
	return c
}

// Validate reports the first field that is out of its range, after the defaults are set. The
// error wraps ErrConfig, or ErrBadName for the campaign.
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
	case c.RetryBase < 0:
		return fmt.Errorf("%w: RetryBase is %v, it must not be negative", ErrConfig, c.RetryBase)
	case c.RetryMax < c.RetryBase:
		return fmt.Errorf("%w: RetryMax is %v, less than RetryBase (%v)", ErrConfig, c.RetryMax, c.RetryBase)
	case c.Patience < 0:
		return fmt.Errorf("%w: Patience is %v, it must not be negative", ErrConfig, c.Patience)
	}
	return nil
}
