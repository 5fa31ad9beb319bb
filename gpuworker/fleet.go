package gpuworker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"time"

	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/restore"
	"ddiff/storage"
)

const (
	// glance is how long a pull waits that only looks whether there is work.
	glance = 5 * time.Millisecond
	// fleetSlice is the longest pull, see pullSlice. A fleet's is longer, for its number.
	fleetSlice = time.Second
	// notReady is the pause after a campaign's queue was not there, troubled the one after
	// something else went wrong with a campaign.
	notReady = 500 * time.Millisecond
	troubled = 5 * time.Second
)

// Engines opens the priors of campaigns, see [EngineCache].
type engines interface {
	// Fetch sees to it that the prior lies on this machine. It does not wait: ready is false
	// while it is being fetched.
	Fetch(prior manifest.PriorFile) (ready bool, err error)
	// Acquire gives the engine of a prior, and what gives it back.
	Acquire(ctx context.Context, prior manifest.PriorFile) (*restore.Engine, func(), error)
}

// board is where campaigns are announced.
type board interface {
	Watch(ctx context.Context, prefix string) iter.Seq2[queue.Change, error]
}

// FleetConfig describes a Fleet. Fields without a stated default are required.
type FleetConfig struct {
	// Board is where campaigns are announced.
	Board board
	// Attach opens the queue of a campaign.
	Attach func(ctx context.Context, campaign string) (*queue.Queue, error)
	// Store is the store of the cluster.
	Store storage.Store
	// Sources is where datasets are read.
	Sources sources
	// Engines open priors. Nil only where workers simulate.
	Engines engines
	// Tuner says how many items are worth leasing. Default: DefaultBatch are leased.
	Tuner *Tuner
	// Batch, if above 0, is the number of items that are leased and solved together, whatever
	// a campaign says.
	Batch int
	// Now is the clock. Default: time.Now.
	Now func() time.Time
	// Logger is told of campaigns that cannot be worked on. Default: nothing is logged.
	Logger *slog.Logger
}

// Validate names the first field that is missing or out of range.
func (c FleetConfig) Validate() error {
	switch {
	case c.Board == nil:
		return errors.New("Board is missing")
	case c.Attach == nil:
		return errors.New("Attach is missing")
	case c.Store == nil:
		return errors.New("Store is missing")
	case c.Sources == nil:
		return errors.New("Sources is missing")
	case c.Batch < 0 || c.Batch > maxBatch:
		return fmt.Errorf("Batch: %d is outside 0..%d", c.Batch, maxBatch)
	}
	return nil
}

// Fleet hands out the items of all campaigns of a cluster that may be worked on. Items of the
// highest class that has any come first; within a class campaigns take turns by their weight,
// see rotation. Make it with NewFleet and run Watch beside the workers, of which several may
// share it.
type Fleet struct {
	cfg FleetConfig

	mu        sync.Mutex
	campaigns map[string]*campaign
	newer     map[string]bool // campaigns that only a later version can read
	ready     bool            // the board was read once
	changed   chan struct{}   // closed at the next change of the board
	rotations map[manifest.Priority]*rotation
	polls     int
}

// campaign is one that was announced.
type campaign struct {
	record    manifest.Campaign
	store     storage.Store
	cancelled chan struct{} // closed when the campaign is to stop at once
	gone      bool          // cancelled is closed

	attaching sync.Mutex
	queue     *queue.Queue

	again time.Time // not to be tried before
	said  string    // the last trouble that was logged
}

// NewFleet checks the configuration.
func NewFleet(cfg FleetConfig) (*Fleet, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure fleet: %w", err)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Fleet{
		cfg: cfg, campaigns: map[string]*campaign{}, newer: map[string]bool{},
		changed: make(chan struct{}), rotations: map[manifest.Priority]*rotation{},
	}, nil
}

// Watch follows the board until ctx ends.
func (f *Fleet) Watch(ctx context.Context) {
	for ctx.Err() == nil {
		if err := f.follow(ctx); err != nil && ctx.Err() == nil {
			f.cfg.Logger.Warn("lost sight of the campaigns, looking again", "reason", err)
			pause(ctx, notReady)
		}
	}
}

func (f *Fleet) follow(ctx context.Context) error {
	seen := map[string]bool{}
	for change, err := range f.cfg.Board.Watch(ctx, manifest.KeyCampaignPrefix) {
		switch {
		case err != nil:
			return err
		case change.Ready:
			f.forget(func(key string) bool { return !seen[key] })
		case change.Deleted:
			f.forget(func(key string) bool { return key == change.Key })
		default:
			seen[change.Key] = true
			f.take(change)
		}
	}
	return nil
}

// take notes a record as it is now.
func (f *Fleet) take(change queue.Change) {
	var version struct{ Schema int }
	var r manifest.Campaign
	err := json.Unmarshal(change.Data, &version)
	newer := err == nil && version.Schema > manifest.RecordSchema
	if err == nil && !newer {
		if err = json.Unmarshal(change.Data, &r); err == nil {
			err = r.Validate()
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.tell()
	if newer {
		if !f.newer[change.Key] {
			f.newer[change.Key] = true
			f.cfg.Logger.Error("cannot work on a campaign: it was submitted by a later version of ddiff; run that version here, too",
				"record", change.Key, "schema", version.Schema, "this", manifest.RecordSchema)
		}
		f.drop(change.Key)
		return
	}
	if err != nil {
		f.cfg.Logger.Error("cannot read the record of a campaign", "record", change.Key, "reason", err)
		f.drop(change.Key)
		return
	}
	c := f.campaigns[change.Key]
	if c == nil || c.record.Output != r.Output {
		store, err := storage.NewPrefixed(f.cfg.Store, r.Output)
		if err != nil {
			f.cfg.Logger.Error("cannot work on a campaign", "campaign", r.ID, "reason", err)
			f.drop(change.Key)
			return
		}
		if c == nil {
			c = &campaign{cancelled: make(chan struct{})}
			f.campaigns[change.Key] = c
		}
		c.store = store
	}
	if c.gone && r.Wanted != manifest.WantCancelNow {
		c.cancelled, c.gone = make(chan struct{}), false
	}
	if c.record.Prior != r.Prior || c.record.Phase != r.Phase {
		c.again = time.Time{}
	}
	c.record = r
	if r.Wanted == manifest.WantCancelNow {
		c.stop()
	}
}

// stop tells workers that hold items to stop.
func (c *campaign) stop() {
	if !c.gone {
		close(c.cancelled)
		c.gone = true
	}
}

// forget drops the campaigns whose records are gone.
func (f *Fleet) forget(gone func(key string) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.tell()
	f.ready = true
	for key := range f.campaigns {
		if gone(key) {
			f.drop(key)
		}
	}
}

func (f *Fleet) drop(key string) {
	if c := f.campaigns[key]; c != nil {
		c.stop()
		delete(f.campaigns, key)
		for _, r := range f.rotations {
			r.idle(c.record.ID)
		}
	}
}

// tell wakes those that wait for a change.
func (f *Fleet) tell() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// Works tells whether items of a campaign are handed out, as far as this fleet has heard.
func (f *Fleet) Works(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.campaigns {
		if c.record.ID == id {
			return c.record.Open() && !c.gone
		}
	}
	return false
}
