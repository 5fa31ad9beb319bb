package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"ddiff/coordinator/shard"
	"ddiff/queue"
	"ddiff/storage"
)

// sources is where datasets are read.
type sources interface {
	Get(ctx context.Context, path string) ([]byte, error)
}

// Config describes a coordinator. Fields without a stated default are required.
type Config struct {
	Board *queue.Board
	// Open opens a campaign's queue, and makes on the server what is missing.
	Open func(ctx context.Context, campaign string, attempts int) (*queue.Queue, error)
	// Sweep buries the items that ended all their workers, until ctx ends. It may be nil.
	Sweep func(ctx context.Context) error
	// Store is the cluster's store; StoreAddress is how workers open it.
	Store        storage.Store
	StoreAddress string
	// Sources and Rows read datasets. Rows' default: manifest.Rows.
	Sources sources
	Rows    shard.Rows
	// AckWait is how long a lease lasts. Default: 60 s.
	AckWait time.Duration
	// Tick is the time between two looks at the queue. Default: 1 s.
	Tick time.Duration
	// Stall is how long the queue may hold fewer items than the ledger misses before the
	// coordinator compares with storage. Default: 15 s.
	Stall time.Duration
	// ReportItems is the largest campaign that gets a report with pictures and tables; a
	// report needs some kilobytes of memory for each item. Default: 20,000.
	ReportItems int
	// Now is the clock. Default: time.Now.
	Now    func() time.Time
	Logger *slog.Logger
	Tracer trace.Tracer
}

// Validate names the first field that is missing or out of range.
func (c Config) Validate() error {
	switch {
	case c.Board == nil:
		return errors.New("Board is missing")
	case c.Open == nil:
		return errors.New("Open is missing")
	case c.Store == nil:
		return errors.New("Store is missing")
	case c.Sources == nil:
		return errors.New("Sources is missing")
	case c.Logger == nil:
		return errors.New("Logger is missing")
	case c.Tracer == nil:
		return errors.New("Tracer is missing")
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{{"AckWait", c.AckWait}, {"Tick", c.Tick}, {"Stall", c.Stall}} {
		if d.value < 0 {
			return fmt.Errorf("%s: %v is negative", d.field, d.value)
		}
	}
	if c.ReportItems < 0 {
		return fmt.Errorf("ReportItems: %d is negative", c.ReportItems)
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.AckWait == 0 {
		c.AckWait = time.Minute
	}
	if c.Tick == 0 {
		c.Tick = time.Second
	}
	if c.Stall == 0 {
		c.Stall = 15 * time.Second
	}
	if c.ReportItems == 0 {
		c.ReportItems = 20000
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}
