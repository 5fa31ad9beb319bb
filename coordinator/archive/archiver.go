package archive

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"ddiff/coordinator/board"
	"ddiff/coordinator/index"
	"ddiff/internal/retry"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/storage"
)

// Archiver moves ended campaigns from the board to the archive in the store, and back. One archiver belongs to each term
// of a leader.
type Archiver struct {
	cfg Config
	x   index.Index
	// campaigns are those of the board.
	campaigns *queue.Mirror

	// loaded: the index was read; seen has, by key, when this leader first saw the current revision of a record. Only scan uses them.
	loaded bool
	seen   map[string]sighting

	// answers are those to requests that execute is executing.
	answers singleflight.Group
	execute func(ctx context.Context, r *request) error
	// turn lets one campaign at a time change between board and archive. Requests that change none do not wait for it.
	turn sync.Mutex
	mu   sync.Mutex
	// open has the campaigns of the board that the index has as open.
	open map[string]bool
	// missed has the campaigns whose record the store did not return at the last look.
	missed map[string]bool
}

// sighting is the first time at which a revision was seen, by the clock of this process.
type sighting struct {
	revision uint64
	at       time.Time
	compared bool // with the store
}

// Config describes an [Archiver]. All fields are required.
type Config struct {
	Board *queue.Board
	// Store is the cluster's store.
	Store storage.Store
	// Inspect opens the queue of a campaign that is not running.
	Inspect func(ctx context.Context, campaign string) (*queue.Queue, error)
	// Running reports whether a campaign has a runner.
	Running func(campaign string) bool
	// Tick is the shortest interval between two scans of the board, After the time after its end at which a campaign is
	// archived, Restart the pause after an error.
	Tick, After, Restart time.Duration
	// Now is the clock.
	Now    func() time.Time
	Logger *slog.Logger
}

// New returns the archiver of a new term.
func New(cfg Config) *Archiver {
	a := &Archiver{
		cfg: cfg, x: index.New(cfg.Store), seen: map[string]sighting{}, open: map[string]bool{}, missed: map[string]bool{},
		campaigns: cfg.Board.Mirror(manifest.KeyCampaignPrefix),
	}
	a.execute = a.executeOnce
	return a
}

// inTurn calls change, which moves a campaign between board and archive, alone.
func (a *Archiver) inTurn(change func() error) error {
	a.turn.Lock()
	defer a.turn.Unlock()
	return change()
}

// isOpen reports whether the index is known to have a campaign as open.
func (a *Archiver) isOpen(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.open[id]
}

// setOpen notes whether the index has a campaign as open.
func (a *Archiver) setOpen(id string, open bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open[id] = open; !open {
		delete(a.open, id)
	}
}

// enterOpen enters a campaign of the board into the index as open.
func (a *Archiver) enterOpen(ctx context.Context, c *manifest.Campaign) error {
	if err := a.x.Open(ctx, c); err != nil {
		return err
	}
	a.setOpen(c.ID, true)
	return nil
}

// Run restores lost campaigns and archives ended campaigns until ctx ends. It retries after errors.
func (a *Archiver) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		pause := max(a.cfg.Tick, min(a.cfg.After/4, 30*time.Second))
		if err := a.scan(ctx); err != nil && ctx.Err() == nil {
			pause = a.cfg.Restart
			a.cfg.Logger.Warn("could not restore or archive campaigns, will retry", "after", pause, "reason", err)
		}
		_ = retry.Sleep(ctx, pause) // the loop checks ctx
	}
	return nil
}

// load restores the campaigns that the index has as open and that are not among those of the board. It marks the store as that of a
// cluster.
func (a *Archiver) load(ctx context.Context, onBoard map[string]queue.Change) error {
	entries, err := a.x.All(ctx)
	if err != nil {
		return err
	}
	_, err = a.cfg.Store.Stat(ctx, index.KeyComplete)
	if errors.Is(err, storage.ErrNotFound) {
		err = a.cfg.Store.Put(ctx, index.KeyComplete, nil)
	}
	if err != nil {
		return fmt.Errorf("mark the index of campaigns: %w", err)
	}
	for _, id := range slices.Sorted(maps.Keys(entries)) {
		if entries[id].State != index.Open {
			continue
		}
		if _, found := onBoard[manifest.KeyCampaignPrefix+id]; found {
			a.setOpen(id, true)
			continue
		}
		if err := a.restoreOpen(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// restoreOpen restores an open campaign that the board lacks, unless the store has no record of it that can be read.
func (a *Archiver) restoreOpen(ctx context.Context, id string) error {
	err := a.inTurn(func() error {
		newest, err := a.x.Newest(ctx, id)
		if err != nil || newest.State != index.Open {
			return err // archived or deleted since it was seen as open
		}
		return a.restore(ctx, id)
	})
	switch {
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, index.ErrDeleting):
		return nil
	case errors.Is(err, board.ErrDamaged):
		a.cfg.Logger.Warn("cannot restore a campaign", "campaign", id, "reason", err)
		return nil
	}
	return err
}

// scan archives the campaigns that ended long enough ago, and enters new ones into the index.
func (a *Archiver) scan(ctx context.Context) error {
	campaigns, err := a.campaigns.Read(ctx)
	if err != nil {
		return err
	}
	if !a.loaded {
		if err := a.load(ctx, campaigns); err != nil {
			return err
		}
		a.loaded = true
	}
	if err := a.restoreLost(ctx, campaigns); err != nil {
		return err
	}
	maps.DeleteFunc(a.seen, func(key string, _ sighting) bool { return campaigns[key].Key == "" })
	var errs error
	for _, key := range slices.Sorted(maps.Keys(campaigns)) {
		errs = errors.Join(errs, a.scanRecord(ctx, campaigns[key]), ctx.Err())
	}
	return errs
}

// scanRecord archives or enters one campaign.
func (a *Archiver) scanRecord(ctx context.Context, record queue.Change) error {
	now := a.cfg.Now()
	if a.seen[record.Key].revision != record.Revision {
		a.seen[record.Key] = sighting{revision: record.Revision, at: now}
	}
	c, err := manifest.DecodeCampaign(strings.TrimPrefix(record.Key, manifest.KeyCampaignPrefix), record.Data)
	if err != nil {
		return nil //nolint:nilerr // the service has logged it
	}
	if seen := a.seen[record.Key]; !seen.compared && !board.Active(c) && !a.cfg.Running(c.ID) {
		var now *manifest.Campaign
		var revision uint64
		err := a.inTurn(func() (err error) {
			now, revision, err = a.Reconcile(ctx, c)
			return err
		})
		if err != nil || now == nil || revision != 0 {
			return err // the next scan has the record of now
		}
		seen.compared = true
		a.seen[record.Key] = seen
	}
	if a.due(c, a.seen[record.Key], now) {
		return a.inTurn(func() error { return a.archive(ctx, c, record.Revision) })
	}
	if a.isOpen(c.ID) || board.IsNew(c) {
		return nil // admit enters new campaigns
	}
	return a.inTurn(func() error {
		_, _, err := a.cfg.Board.Get(ctx, record.Key)
		if errors.Is(err, queue.ErrNoRecord) {
			return nil // archived since the records were listed
		}
		if err != nil {
			return err
		}
		return a.enterOpen(ctx, c)
	})
}

// due reports whether a campaign is to be archived. The clock of the leader that ended the campaign may differ from this
// one: a time in the future counts from the first sighting. A clock that is ahead archives early, which loses nothing.
func (a *Archiver) due(c *manifest.Campaign, seen sighting, now time.Time) bool {
	if board.Active(c) || a.cfg.Running(c.ID) {
		return false
	}
	since := c.Finished
	if c.Recalled.After(since) {
		since = c.Recalled
	}
	if since.After(now) {
		since = seen.at
	}
	return now.Sub(since) >= a.cfg.After
}

// archive moves an ended campaign with the given record to the archive: the record stays in the store, and its line in the index. If the
// record changes meanwhile, because the campaign is resumed, the campaign stays on the board. Outcomes that no part of
// the ledger has stay in their stream.
//
// A crash after any write leaves a state that the next leader completes: the record on the board is deleted last.
func (a *Archiver) archive(ctx context.Context, c *manifest.Campaign, revision uint64) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("archive campaign %s: %w", c.ID, err)
		}
	}()
	q, err := a.cfg.Inspect(ctx, c.ID)
	if err != nil {
		return err
	}
	if err := q.Drop(ctx); err != nil { // work that a crash has left
		return err
	}
	_, current, err := a.cfg.Board.Get(ctx, manifest.KeyCampaignPrefix+c.ID)
	if errors.Is(err, queue.ErrNoRecord) || err == nil && current != revision {
		return nil // archived by another leader, or resumed
	}
	if err != nil {
		return err
	}
	if err := board.Store(ctx, a.cfg.Store, c); err != nil {
		return err
	}
	newest, err := a.x.Newest(ctx, c.ID)
	if err != nil {
		return err
	}
	last := c.Last
	if last == nil {
		last = &manifest.Status{}
	}
	a.setOpen(c.ID, false) // whatever follows: the next scan enters a campaign that stays as open again
	err = a.x.Add(ctx, index.Entry{
		ID: c.ID, Number: max(newest.Number+1, 1), State: index.Archived, Output: index.OutputDigest(c.Output), Row: index.Row{
			Phase: c.Phase, Priority: c.Priority, Weight: c.Weight, Counts: last.Counts,
			Submitted: c.Submitted, Finished: c.Finished, Archived: a.cfg.Now().UTC(),
			Seconds: last.Seconds, Cost: last.Cost,
		},
	})
	if err != nil {
		return err
	}
	if err := a.cfg.Board.Delete(ctx, manifest.KeyStatusPrefix+c.ID); err != nil {
		return err
	}
	err = a.cfg.Board.DeleteAt(ctx, manifest.KeyCampaignPrefix+c.ID, revision)
	if errors.Is(err, queue.ErrConflict) {
		return a.x.Open(ctx, c)
	}
	if err == nil {
		a.cfg.Logger.Info("archived campaign", "campaign", c.ID, "phase", c.Phase)
	}
	return err
}
