package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"ddiff/internal/coordinator/health"
	"ddiff/internal/coordinator/notify"
	"ddiff/internal/coordinator/shard"
	"ddiff/internal/queue"
	"ddiff/manifest"
	"ddiff/storage"
	"ddiff/telemetry"
)

// sources reads the files of datasets.
type sources interface {
	Get(ctx context.Context, path string) ([]byte, error)
}

// openQueue opens a campaign's queue and creates the missing parts of it on the server.
type openQueue func(ctx context.Context, campaign string, attempts int) (*queue.Queue, error)

// Config describes a [Service]. Fields without a stated default are required.
type Config struct {
	// Name identifies this coordinator on the board. Default: "coordinator".
	Name  string
	Board *queue.Board
	// Open opens a campaign's queue and creates the missing parts of it on the server.
	Open openQueue
	// Inspect opens the queue of a campaign that is not running, and creates nothing. Default: Open.
	Inspect func(campaign string) (*queue.Queue, error)
	// Sweep removes items that ended all their workers, until ctx ends. Optional.
	Sweep func(ctx context.Context) error
	// Usage returns the sizes of the queue's streams, for an alarm before one is full. Optional.
	Usage func(ctx context.Context) ([]queue.StreamUsage, error)
	// Metrics are the metrics of the coordinator. Default: none are exported.
	Metrics *telemetry.Cluster
	// Store is the cluster's store. StoreAddress is the address by which workers open it.
	Store        storage.Store
	StoreAddress string
	// TakeOver is the cluster that a person takes the store from. Optional.
	TakeOver string
	// Sources reads the files of datasets, Rows their entries. Default of Rows: manifest.Rows.
	Sources sources
	// Models reads priors and operator files at addresses, which may be larger than files of datasets. Default: Sources.
	Models sources
	Rows   shard.Rows
	// Catalogue holds the methods and operators. Default: the built-in ones.
	Catalogue manifest.Catalogue
	// AckWait is the duration of a lease. Default: 60 s.
	AckWait time.Duration
	// Tick is the interval between two checks of the queue. Default: 1 s.
	Tick time.Duration
	// Stall is how long the queue may hold fewer items than the ledger has pending before the coordinator compares the
	// manifest with storage. Default: 15 s.
	Stall time.Duration
	// Restart is the pause before a campaign is retried after an error. Default: 3 s.
	Restart time.Duration
	// Fold is the number of outcomes of a campaign that move from the result stream to the store together. They move
	// after an hour even if they are fewer. Default: 20,000.
	Fold int
	// Settle is the time between two looks at a file of a dataset that was modified within that time, which may still be written. Default: no second look.
	Settle time.Duration
	// Window is the approximate number of items of a window. Default: that of shard.Config.
	Window int
	// Probe is the interval of the checks of the store, and the time limit of one check. Default: 5 s.
	Probe time.Duration
	// Pools are the names of pools whose workers a scaler starts: the metrics have them also without workers. Default:
	// manifest.DefaultPool.
	Pools []string
	// ArchiveAfter is the time after its end at which a campaign moves from the board to the archive. Default: 1 h.
	ArchiveAfter time.Duration
	// Campaigns is the number of campaigns that an owner may have on the board, also ended ones. Default: DefaultCampaigns.
	Campaigns int
	// Notifier sends notifications while this coordinator leads. Nil: a campaign that wants some is rejected.
	Notifier *notify.Notifier
	// Prices are those of pools, Caps those of owners. Default: none.
	Prices Prices
	Caps   Caps
	// Now is the clock. Default: time.Now.
	Now    func() time.Time
	Logger *slog.Logger
	Tracer trace.Tracer
}

// DefaultCampaigns is the default of Config.Campaigns. A leader needs some 230 KiB for a campaign that waits.
const DefaultCampaigns = 1000

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
	if err := c.Prices.Validate(); err != nil {
		return fmt.Errorf("Prices: %w", err)
	}
	if err := c.Caps.Validate(c.Prices); err != nil {
		return fmt.Errorf("Caps: %w", err)
	}
	if c.Fold < 0 {
		return fmt.Errorf("Fold: %d is negative", c.Fold)
	}
	if c.Window < 0 {
		return fmt.Errorf("Window: %d is negative", c.Window)
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{{"AckWait", c.AckWait}, {"Tick", c.Tick}, {"Stall", c.Stall}, {"Restart", c.Restart}, {"Probe", c.Probe}, {"ArchiveAfter", c.ArchiveAfter}, {"Settle", c.Settle}} {
		if d.value < 0 {
			return fmt.Errorf("%s: %v is negative", d.field, d.value)
		}
	}
	return nil
}

// health describes what the coordinator watches.
func (c Config) health() health.Config {
	return health.Config{
		Name: c.Name, Board: c.Board, Store: c.Store, Probe: c.Probe, Tick: c.Tick, Usage: c.Usage, Now: c.Now, Logger: c.Logger,
	}
}

func (c Config) withDefaults() Config {
	c.Name = cmp.Or(c.Name, "coordinator")
	c.AckWait = cmp.Or(c.AckWait, time.Minute)
	c.Tick = cmp.Or(c.Tick, time.Second)
	c.Stall = cmp.Or(c.Stall, 15*time.Second)
	c.Restart = cmp.Or(c.Restart, 3*time.Second)
	c.Fold = cmp.Or(c.Fold, 20_000)
	c.Probe = cmp.Or(c.Probe, 5*time.Second)
	c.ArchiveAfter = cmp.Or(c.ArchiveAfter, time.Hour)
	c.Campaigns = cmp.Or(c.Campaigns, DefaultCampaigns)
	if c.Pools == nil {
		c.Pools = []string{manifest.DefaultPool}
	}
	if c.Models == nil {
		c.Models = c.Sources
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}
