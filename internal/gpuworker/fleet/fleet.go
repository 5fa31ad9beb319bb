// Package fleet dispatches the work of a cluster to workers: a [Fleet] watches the campaigns on the board and leases from the runnable
// ones. Campaigns of the highest priority with work come first; within a priority, campaigns take turns by weight (rotation.go). A Fleet
// remembers which campaigns have no work and checks them at a limited rate, so that a lease costs the same beside a thousand idle
// campaigns (empty.go). A reason for which a worker leases nothing of a campaign belongs to Fleet.lacks (lease.go).
package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"ddiff/internal/gpuworker/tuner"
	"ddiff/internal/lifecycle"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/internal/restore/job"
	"ddiff/internal/retry"
	"ddiff/manifest"
	"ddiff/restore"
	"ddiff/restore/method"
	"ddiff/restore/operator"
	"ddiff/storage"
)

const (
	// notReadyPause is the pause after the queue of a campaign was not ready, errorPause the pause after other errors.
	notReadyPause = 500 * time.Millisecond
	errorPause    = 5 * time.Second
)

// engines opens the priors and operator files of campaigns, see package enginecache.
type engines interface {
	// Acquire returns the engine of a prior, and a function that releases it.
	Acquire(ctx context.Context, prior record.PriorFile) (*restore.Engine, func(), error)
	// Operators returns the operators of a campaign by their digests.
	Operators(ctx context.Context, files []record.OperatorFile) (map[string]*operator.File, error)
}

// board holds the records of campaigns.
type board interface {
	Get(ctx context.Context, key string) (data []byte, revision uint64, err error)
	Watch(ctx context.Context, prefix string) iter.Seq2[queue.Change, error]
}

// Config describes a Fleet. Fields without a stated default are required.
type Config struct {
	// Board holds the records of campaigns.
	Board board
	// Attach opens the queue of a campaign.
	Attach func(ctx context.Context, campaign string) (*queue.Queue, error)
	// Store is the store of the cluster.
	Store storage.Store
	// Sources reads the files of datasets.
	Sources job.Sources
	// Engines opens priors and operator files. Default: nil, for simulated workers.
	Engines engines
	// Tuner supplies the number of items to lease. Default: gpuworker.DefaultBatch items are leased.
	Tuner *tuner.Tuner
	// Pool is the pool of the worker: it leases no items of campaigns that ask for another one. Default: manifest.DefaultPool.
	Pool string
	// Batch, if above 0, is the number of items that are leased and solved together. It overrides the campaigns' sizes.
	Batch int
	// Precisions are those in which this worker computes a network: it leases no items of campaigns with another fixed
	// precision. Default: nil, items of all precisions are leased.
	Precisions []manifest.Precision
	// Whole are those in which this worker computes methods that differentiate the network or evaluate it in a loop: it leases no items of
	// campaigns with such a method and another precision. Default: nil, items of all precisions are leased.
	Whole []manifest.Precision
	// Default is the precision of campaigns that fix none. Default: empty, it is not known and Whole does not regard these campaigns.
	Default manifest.Precision
	// Methods are the restoration methods. Default: the built-in ones.
	Methods method.Set
	// Now is the clock. Default: time.Now.
	Now func() time.Time
	// Logger logs campaigns that cannot be processed. Default: none.
	Logger *slog.Logger
}

// Validate names the first field that is missing or out of range.
func (c Config) Validate() error {
	switch {
	case c.Board == nil:
		return errors.New("Board is missing")
	case c.Attach == nil:
		return errors.New("Attach is missing")
	case c.Store == nil:
		return errors.New("Store is missing")
	case c.Sources == nil:
		return errors.New("Sources is missing")
	case c.Batch < 0 || c.Batch > tuner.MaxBatch:
		return fmt.Errorf("Batch: %d is outside 0..%d", c.Batch, tuner.MaxBatch)
	}
	return nil
}

// Fleet is the dispatcher of a cluster: it leases the items of all runnable campaigns. Preflights come first, then
// campaigns of the highest priority with work; within a priority campaigns take turns by weight, see rotation. Campaigns
// without work cost almost nothing, see emptiness. Several workers may share a Fleet, and find campaigns only during Run. Create it with New.
type Fleet struct {
	cfg Config

	mu        sync.Mutex
	campaigns map[string]*campaign // by key
	newer     map[string]bool      // keys of records that need a newer version
	changed   chan struct{}        // closed at the next change of the board
	opened    *openCampaigns       // nil after a change
	rotations map[record.Priority]*rotation
	checks    *rate.Limiter // of empty campaigns
	workers   int           // live workers of the cluster, 0 while their number is unknown

	skipPreflight bool // the last call of Next leased a preflight
}

// campaign is a campaign on the board.
type campaign struct {
	record   record.Campaign
	store    storage.Store
	lifetime context.Context // ends when the campaign is cancelled immediately
	cancel   context.CancelFunc

	attaching sync.Mutex
	queue     *queue.Queue

	empty     emptiness
	retryAt   time.Time
	leaseOne  bool   // see LeaseOne
	first     bool   // see LeaseFirst
	lastError string // in the log
	refused   string // why this worker cannot process the campaign
}

// New checks the configuration.
func New(cfg Config) (*Fleet, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure fleet: %w", err)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Pool = cmp.Or(cfg.Pool, manifest.DefaultPool)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	return &Fleet{
		cfg: cfg, campaigns: map[string]*campaign{}, newer: map[string]bool{},
		changed: make(chan struct{}), rotations: map[record.Priority]*rotation{},
		checks: rate.NewLimiter(workerChecks, checkBurst),
	}, nil
}

// Run watches the board until ctx ends.
func (f *Fleet) Run(ctx context.Context) error {
	defer lifecycle.Go(ctx, f.countWorkers).Stop()
	for ctx.Err() == nil {
		if err := f.watch(ctx); err != nil && ctx.Err() == nil {
			f.cfg.Logger.Warn("could not watch the campaigns, will retry", "reason", err)
			_ = retry.Sleep(ctx, notReadyPause) // the loop checks ctx
		}
	}
	return ctx.Err()
}

func (f *Fleet) watch(ctx context.Context) error {
	seen := map[string]bool{}
	for change, err := range f.cfg.Board.Watch(ctx, record.KeyCampaignPrefix) {
		switch {
		case err != nil:
			return err
		case change.Ready:
			f.removeIf(func(key string) bool { return !seen[key] })
		case change.Deleted:
			f.removeIf(func(key string) bool { return key == change.Key })
		default:
			seen[change.Key] = true
			f.update(change)
		}
	}
	return nil
}

// update stores a changed record.
func (f *Fleet) update(change queue.Change) {
	var version struct{ Schema int }
	newer := json.Unmarshal(change.Data, &version) == nil && version.Schema > record.Schema
	r, err := record.DecodeCampaign(strings.TrimPrefix(change.Key, record.KeyCampaignPrefix), change.Data)
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.notify()
	if newer {
		if !f.newer[change.Key] {
			f.newer[change.Key] = true
			f.cfg.Logger.Error("cannot process a campaign that a newer version of ddiff submitted; update this worker",
				"record", change.Key, "schema", version.Schema, "supported", record.Schema)
		}
		f.remove(change.Key)
		return
	}
	if err != nil { // the leased items belong to the campaign as it was; the leader restores the record
		f.cfg.Logger.Error("cannot read the record of a campaign", "record", change.Key, "reason", err)
		return
	}
	delete(f.newer, change.Key)
	c := f.campaigns[change.Key]
	if c == nil || c.record.Output != r.Output {
		err := r.CheckOutput()
		var store storage.Store
		if err == nil {
			store, err = storage.NewPrefixed(f.cfg.Store, r.Output)
		}
		if err != nil {
			f.cfg.Logger.Error("cannot process campaign", "campaign", r.ID, "reason", err)
			return
		}
		if c == nil {
			c = &campaign{}
			f.campaigns[change.Key] = c
		}
		c.store = store
	}
	cancelled := r.Wanted == record.WantCancelNow
	if c.lifetime == nil || (c.lifetime.Err() != nil && !cancelled) {
		c.lifetime, c.cancel = context.WithCancel(context.Background())
	}
	if c.record.Prior != r.Prior || c.record.Phase != r.Phase || !slices.Equal(c.record.Operators, r.Operators) {
		c.retryAt = time.Time{}
	}
	c.record = *r
	if reason := f.lacks(r); reason != nil && c.refused == "" && r.MayUse(f.cfg.Pool) {
		c.refused = reason.Error()
		f.cfg.Logger.Warn("leases no items of a campaign", "campaign", r.ID, "reason", reason)
	}
	c.empty.wake()
	if cancelled {
		c.cancel()
	}
}

// removeIf removes the campaigns with matching keys.
func (f *Fleet) removeIf(match func(key string) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.notify()
	for key := range f.campaigns {
		if match(key) {
			f.remove(key)
		}
	}
	maps.DeleteFunc(f.newer, func(key string, _ bool) bool { return match(key) })
}

// remove removes a campaign, and cancels its items.
func (f *Fleet) remove(key string) {
	if c := f.campaigns[key]; c != nil {
		c.cancel()
		delete(f.campaigns, key)
		for _, r := range f.rotations {
			r.idle(c.record.ID)
		}
	}
}

// notify wakes the workers that wait for a change of the board. The caller holds f.mu.
func (f *Fleet) notify() {
	f.opened = nil
	close(f.changed)
	f.changed = make(chan struct{})
}
