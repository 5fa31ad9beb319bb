package gpuworker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"ddiff/telemetry"
)

// store is where results are written.
type store interface {
	Get(ctx context.Context, key string) ([]byte, error)
	Put(ctx context.Context, key string, data []byte) error
	Create(ctx context.Context, key string, data []byte) error
	Delete(ctx context.Context, key string) error
}

// sources is where datasets are read.
type sources interface {
	Get(ctx context.Context, path string) ([]byte, error)
}

// tail keeps the last lines that were logged about an item.
type tail interface {
	Lines(item string) []string
}

// Config describes a worker. Fields without a stated default are required.
type Config struct {
	// Work hands out items: [Single] or [Fleet].
	Work dispatcher
	// Name identifies the worker in results. Default: "worker".
	Name string
	// Version is the program's version, for results.
	Version string
	// Tuner finds the batch size of assignments that say none. Default: they are solved by
	// DefaultBatch.
	Tuner *Tuner
	// AckWait is the queue's lease time; leases are extended after a third of it. Default: 30 s.
	AckWait time.Duration
	// StageLimit is how long leases are extended while one stage of the work goes on and
	// says nothing: reading files, compiling a model, writing a result. What takes longer
	// counts as hanging. The steps of the solver have a limit of their own, see held.
	// Default: 5 min.
	StageLimit time.Duration
	// Idle is how long one pull waits for work. Default: 1 s.
	Idle time.Duration
	// Once, if above 0, ends Run when there was no work for so long.
	Once time.Duration
	// Outlast says that a queue that fails is waited for, and that an item which could not
	// be settled is left to the end of its lease. It is for a queue that runs elsewhere.
	// Without it such an error ends Run.
	Outlast bool
	// Simulate, if not nil, replaces computing: see [Simulation].
	Simulate *Simulation
	// Log, if not nil, gives the last lines about an item for its dead letter.
	Log tail
	// Steps, if not nil, is told of solver steps as they are made (images × steps). It must
	// not block.
	Steps func(n int)
	// Now is the clock. Default: time.Now.
	Now func() time.Time
	// Logger, Tracer and Instruments take what the worker tells of itself.
	Logger      *slog.Logger
	Tracer      trace.Tracer
	Instruments *telemetry.Instruments
}

// Validate names the first field that is missing or out of range.
func (c Config) Validate() error {
	switch {
	case c.Work == nil:
		return errors.New("Work is missing")
	case c.Logger == nil:
		return errors.New("Logger is missing")
	case c.Tracer == nil:
		return errors.New("Tracer is missing")
	case c.Instruments == nil:
		return errors.New("Instruments is missing")
	case c.AckWait < 0:
		return fmt.Errorf("AckWait: %v is negative", c.AckWait)
	case c.StageLimit < 0:
		return fmt.Errorf("StageLimit: %v is negative", c.StageLimit)
	case c.Idle < 0:
		return fmt.Errorf("Idle: %v is negative", c.Idle)
	case c.Once < 0:
		return fmt.Errorf("Once: %v is negative", c.Once)
	}
	if s, ok := c.Work.(interface{ Validate() error }); ok {
		if err := s.Validate(); err != nil {
			return fmt.Errorf("Work: %w", err)
		}
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.Name == "" {
		c.Name = "worker"
	}
	if c.AckWait == 0 {
		c.AckWait = 30 * time.Second
	}
	if c.StageLimit == 0 {
		c.StageLimit = 5 * time.Minute
	}
	if c.Idle == 0 {
		c.Idle = time.Second
	}
	if c.Steps == nil {
		c.Steps = func(int) {}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}
