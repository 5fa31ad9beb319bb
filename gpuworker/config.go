package gpuworker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"ddiff/internal/gpuworker/guard"
	"ddiff/internal/gpuworker/tuner"
	"ddiff/internal/restore/job"
	"ddiff/telemetry"
)

// store holds results and checkpoints.
type store interface {
	Get(ctx context.Context, key string) ([]byte, error)
	Put(ctx context.Context, key string, data []byte) error
	Create(ctx context.Context, key string, data []byte) error
	Delete(ctx context.Context, key string) error
}

// Config describes a worker. Fields without a stated default are required.
type Config struct {
	// Work leases items: [Single] or a fleet.
	Work dispatcher
	// Name identifies the worker in results. Default: "worker".
	Name string
	// Pool is the worker's pool, for the cost of its work. Default: none, which counts as manifest.DefaultPool.
	Pool string
	// Version is the program's version, for results.
	Version string
	// Tuner finds the batch size of assignments without one. Default: a new tuner.
	Tuner *tuner.Tuner
	// AckWait is the lease time of the queue. Leases are extended after a third of it. Default: 30 s.
	AckWait time.Duration
	// Limits are the longest durations of the stages.
	Limits guard.Limits
	// Idle is how long one lease request waits for work. Default: 1 s.
	Idle time.Duration
	// Once, if above 0, makes Run return after this time without work.
	Once time.Duration
	// TolerateQueueErrors keeps the worker running while an external queue is unavailable: it retries lease requests,
	// and leaves an item that it cannot settle to the expiry of the lease. Default: a queue error ends Run.
	TolerateQueueErrors bool
	// WholeResults publishes complete results to the queue, for a coordinator in the same process that reports their
	// scores. Default: only the outcome, see [item.Event].
	WholeResults bool
	// SolveMemory limits the estimated memory for solving a batch beside the weights of the network, in bytes, see
	// restore.Engine.Memory. Batches shrink to it. An item that needs more alone is left to another worker, and fails if
	// that has too little memory too. Default: job.DefaultSolveShare of the memory of the machine or its container; no limit if that is
	// unknown.
	SolveMemory int64
	// Patience is how long a temporary failure of the environment may last; then Run ends with its error, at once for
	// other failures of the store. Failures of a dataset's files use attempts. Default: Run waits without a limit, and
	// files are no exception.
	Patience time.Duration
	// ProbePause is the pause between the first two tests of a failing environment; it doubles up to 30 s. Default: 1 s.
	ProbePause time.Duration
	// PauseAfter is how long an environment may fail that needs a person before the worker reports the campaign's fault
	// to the coordinator. Default: 15 min.
	PauseAfter time.Duration
	// Peers, if not nil, returns the number of other live workers. They get an item that this worker disputes.
	Peers func(ctx context.Context) (int, error)
	// Ended, if not nil, returns how many workers of the cluster have ended without a word so far, as the leader of a campaign counts them.
	// An item is not blamed for the end of its workers where others end as often.
	Ended func(ctx context.Context, campaign string) (int, error)
	// Simulate, if not nil, replaces computation, see [Simulation].
	Simulate *Simulation
	// Log, if not nil, supplies the last log lines about an item for its result and the records of its
	// attempts.
	Log *Tail
	// Steps, if not nil, is called after solver steps with their number (images × steps). It must not block.
	Steps func(n int)
	// Now is the clock. Default: time.Now.
	Now func() time.Time

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
	case c.SolveMemory < 0:
		return fmt.Errorf("SolveMemory: %d is negative", c.SolveMemory)
	}
	for _, f := range []struct {
		name  string
		value time.Duration
	}{
		{"AckWait", c.AckWait}, {"Idle", c.Idle}, {"Once", c.Once}, {"Patience", c.Patience}, {"ProbePause", c.ProbePause}, {"PauseAfter", c.PauseAfter},
	} {
		if f.value < 0 {
			return fmt.Errorf("%s: %v is negative", f.name, f.value)
		}
	}
	if err := c.Limits.Validate(); err != nil {
		return fmt.Errorf("Limits: %w", err)
	}
	if s, ok := c.Work.(interface{ Validate() error }); ok {
		if err := s.Validate(); err != nil {
			return fmt.Errorf("Work: %w", err)
		}
	}
	return nil
}

func (c Config) withDefaults() Config {
	c.Name = cmp.Or(c.Name, "worker")
	c.AckWait = cmp.Or(c.AckWait, 30*time.Second)
	c.Limits = c.Limits.WithDefaults()
	c.Idle = cmp.Or(c.Idle, time.Second)
	if c.SolveMemory == 0 {
		c.SolveMemory = job.SolveMemory(job.DefaultSolveShare)
	}
	c.ProbePause = cmp.Or(c.ProbePause, time.Second)
	c.PauseAfter = cmp.Or(c.PauseAfter, 15*time.Minute)
	if c.Steps == nil {
		c.Steps = func(int) {}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}
