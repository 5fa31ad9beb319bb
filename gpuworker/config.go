package gpuworker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"ddiff/queue"
	"ddiff/restore"
	"ddiff/telemetry"
)

// work is where items come from and results go.
type work interface {
	Lease(ctx context.Context, n int, wait time.Duration) ([]*queue.Lease, error)
	PublishResult(ctx context.Context, id string, payload []byte) error
}

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

// Config describes a worker. Fields without a stated default are required.
type Config struct {
	Queue   work
	Store   store
	Sources sources
	Engine  *restore.Engine
	// Name identifies the worker in results. Default: "worker".
	Name string
	// Version is the program's version, for results.
	Version string
	// Batch is the number of items that are solved together at most. Default: 4.
	Batch int
	// AckWait is the queue's lease time; leases are extended after a third of it. Default: 30 s.
	AckWait time.Duration
	// Idle is how long one pull waits for work. Default: 1 s.
	Idle time.Duration
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
	case c.Queue == nil:
		return errors.New("Queue is missing")
	case c.Store == nil:
		return errors.New("Store is missing")
	case c.Sources == nil:
		return errors.New("Sources is missing")
	case c.Engine == nil:
		return errors.New("Engine is missing")
	case c.Logger == nil:
		return errors.New("Logger is missing")
	case c.Tracer == nil:
		return errors.New("Tracer is missing")
	case c.Instruments == nil:
		return errors.New("Instruments is missing")
	case c.Batch < 0 || c.Batch > 1024:
		return fmt.Errorf("Batch: %d is outside 0..1024", c.Batch)
	case c.AckWait < 0:
		return fmt.Errorf("AckWait: %v is negative", c.AckWait)
	case c.Idle < 0:
		return fmt.Errorf("Idle: %v is negative", c.Idle)
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.Name == "" {
		c.Name = "worker"
	}
	if c.Batch == 0 {
		c.Batch = 4
	}
	if c.AckWait == 0 {
		c.AckWait = 30 * time.Second
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
