package archive

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/index"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/internal/retry"
	"ddiff/storage"
)

// Archiver moves ended campaigns from the board to the archive in the store, and back. One archiver belongs to each term
// of a leader.
type Archiver struct {
	cfg Config
	x   index.Index
	// campaigns are those of the board.
	campaigns *queue.Mirror

	// loaded is when the index was read last; seen has, by key, when this leader first saw the current revision of a record. Only scan uses them.
	loaded time.Time
	seen   map[string]sighting

	// turns let one change of a campaign between board and archive happen at a time.
	turns [64]sync.Mutex
	mu    sync.Mutex
	// open has the campaigns of the board that the index has as open.
	open map[string]bool
	// missed has the times at which the store did not return the record of a campaign for the first time.
	missed map[string]time.Time
	// back has the times at which campaigns came back from the archive in this term.
	back map[string]time.Time
}

// loadInterval is the time between two comparisons of the index with the board.
const loadInterval = 10 * time.Minute

// sighting is the first time at which a revision was seen, by the clock of this process.
type sighting struct {
	revision uint64
	at       time.Time
}

// Config describes an [Archiver]. All fields are required.
type Config struct {
	Board *queue.Board
	// Store is the cluster's store, Writer changes the records there.
	Store  storage.Store
	Writer *board.Writer
	// Inspect opens the queue of a campaign that is not running.
	Inspect func(ctx context.Context, campaign string) (*queue.Queue, error)
	// Compared is called when all records of the board have been compared with the store. Optional.
	Compared func()
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
	return &Archiver{
		cfg: cfg, x: index.New(cfg.Store), seen: map[string]sighting{}, open: map[string]bool{}, missed: map[string]time.Time{}, back: map[string]time.Time{},
		campaigns: cfg.Board.Mirror(record.KeyCampaignPrefix),
	}
}

// inTurn calls change, which moves a campaign between board and archive, alone.
func (a *Archiver) inTurn(id string, change func() error) error {
	turn := &a.turns[crc32.ChecksumIEEE([]byte(id))%uint32(len(a.turns))]
	turn.Lock()
	defer turn.Unlock()
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
func (a *Archiver) enterOpen(ctx context.Context, c *record.Campaign) error {
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
		if _, found := onBoard[record.KeyCampaignPrefix+id]; found {
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
	err := a.inTurn(id, func() error {
		newest, err := a.x.Newest(ctx, id)
		if err != nil || newest.State != index.Open {
			return err // archived or deleted since it was seen as open
		}
		return a.restore(ctx, newest)
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
	if now := a.cfg.Now(); a.loaded.IsZero() || now.Sub(a.loaded) >= loadInterval {
		if err := a.load(ctx, campaigns); err != nil {
			return err
		}
		if a.loaded.IsZero() {
			if err := a.compareAll(ctx, campaigns); err != nil {
				return err
			}
		}
		a.loaded = now
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

// compareParallel is the number of records that are compared at once at the begin of a term.
const compareParallel = 32

// compareAll compares all records of the board with the store. Those that cannot be compared, or are doubted, are looked at again by their runners and the
// later scans.
func (a *Archiver) compareAll(ctx context.Context, campaigns map[string]queue.Change) error {
	var group errgroup.Group
	group.SetLimit(compareParallel)
	for key, change := range campaigns {
		if c, err := record.DecodeCampaign(strings.TrimPrefix(key, record.KeyCampaignPrefix), change.Data); err == nil {
			group.Go(func() error {
				if _, err := a.Reconcile(ctx, c); err != nil && ctx.Err() == nil {
					a.cfg.Logger.Warn("could not compare a campaign with the store, will retry", "campaign", c.ID, "reason", err)
				}
				return ctx.Err()
			})
		}
	}
	err := group.Wait()
	if err == nil && a.cfg.Compared != nil {
		a.cfg.Compared()
	}
	return err
}

// scanRecord archives or enters one campaign.
func (a *Archiver) scanRecord(ctx context.Context, change queue.Change) error {
	now := a.cfg.Now()
	if a.seen[change.Key].revision != change.Revision {
		a.seen[change.Key] = sighting{revision: change.Revision, at: now}
	}
	c, err := record.DecodeCampaign(strings.TrimPrefix(change.Key, record.KeyCampaignPrefix), change.Data)
	if err != nil {
		return nil //nolint:nilerr // the service has logged it
	}
	if !board.Active(c) && !a.cfg.Running(c.ID) && !a.cfg.Writer.Current(c) {
		_, err := a.Reconcile(ctx, c)
		return err // the next scan has the record of now
	}
	if a.due(c, a.seen[change.Key], now) {
		return a.inTurn(c.ID, func() error { return a.archive(ctx, c, change.Revision) })
	}
	if a.isOpen(c.ID) {
		return nil
	}
	return a.inTurn(c.ID, func() error {
		_, _, err := a.cfg.Board.Get(ctx, change.Key)
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
func (a *Archiver) due(c *record.Campaign, seen sighting, now time.Time) bool {
	if board.Active(c) || a.cfg.Running(c.ID) {
		return false
	}
	since := c.Finished
	a.mu.Lock()
	if back := a.back[c.ID]; back.After(since) {
		since = back
	}
	a.mu.Unlock()
	if since.After(now) {
		since = seen.at
	}
	return now.Sub(since) >= a.cfg.After
}

// archive moves an ended campaign with the given record, which the store has, to the archive: its line enters the index. If the
// record changes meanwhile, because the campaign is resumed, the campaign stays on the board. Outcomes that no part of
// the ledger has stay in their stream.
//
// A crash after any write leaves a state that the next leader completes: the record on the board is deleted last.
func (a *Archiver) archive(ctx context.Context, c *record.Campaign, revision uint64) (err error) {
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
	_, current, err := a.cfg.Board.Get(ctx, record.KeyCampaignPrefix+c.ID)
	if errors.Is(err, queue.ErrNoRecord) || err == nil && (current != revision || a.cfg.Running(c.ID)) {
		return nil // archived by another leader, or resumed, or it has a command
	}
	if err != nil {
		return err
	}
	newest, err := a.x.Newest(ctx, c.ID)
	if err != nil {
		return err
	}
	last := c.Last
	if last == nil {
		last = &record.Status{}
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
	if err := a.cfg.Board.Delete(ctx, record.KeyStatusPrefix+c.ID); err != nil {
		return err
	}
	err = a.cfg.Board.DeleteAt(ctx, record.KeyCampaignPrefix+c.ID, revision)
	if errors.Is(err, queue.ErrConflict) {
		return a.x.Open(ctx, c)
	}
	if err == nil {
		a.cfg.Logger.Info("archived campaign", "campaign", c.ID, "phase", c.Phase)
	}
	return err
}
