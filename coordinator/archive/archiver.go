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

	// turn lets one scan or answer at a time use the fields below.
	turn sync.Mutex
	// loaded: campaigns that the board has lost were restored.
	loaded bool
	// seen has, by key, when this leader first saw the current revision of a record.
	seen map[string]sighting
	// open has the campaigns of the board that the index has as open.
	open map[string]bool
}

// sighting is the first time at which a revision was seen, by the clock of this process.
type sighting struct {
	revision uint64
	at       time.Time
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
	// Recount counts the items of an ended campaign whose status was lost with the board, and publishes the status.
	Recount func(ctx context.Context, c *manifest.Campaign) error
	// Tick is the shortest interval between two scans of the board, After the time after its end at which a campaign is
	// archived, Restart the pause after an error.
	Tick, After, Restart time.Duration
	// Now is the clock.
	Now    func() time.Time
	Logger *slog.Logger
}

// New returns the archiver of a new term.
func New(cfg Config) *Archiver {
	return &Archiver{cfg: cfg, x: index.New(cfg.Store), seen: map[string]sighting{}, open: map[string]bool{}}
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

// scan archives the campaigns that ended long enough ago, and enters new ones into the index.
func (a *Archiver) scan(ctx context.Context) error {
	a.turn.Lock()
	defer a.turn.Unlock()
	if !a.loaded {
		if err := a.load(ctx); err != nil {
			return err
		}
		a.loaded = true
	}
	// The statuses come first: a status without a campaign then belongs to a campaign that has left the board.
	statuses, err := board.Records(ctx, a.cfg.Board, manifest.KeyStatusPrefix)
	if err != nil {
		return err
	}
	campaigns, err := board.Records(ctx, a.cfg.Board, manifest.KeyCampaignPrefix)
	if err != nil {
		return err
	}
	maps.DeleteFunc(a.seen, func(key string, _ sighting) bool { return campaigns[key].Key == "" })
	var errs error
	for _, key := range slices.Sorted(maps.Keys(campaigns)) {
		_, counted := statuses[manifest.KeyStatusPrefix+strings.TrimPrefix(key, manifest.KeyCampaignPrefix)]
		errs = errors.Join(errs, a.scanRecord(ctx, campaigns[key], counted), ctx.Err())
	}
	for key := range statuses {
		if id := strings.TrimPrefix(key, manifest.KeyStatusPrefix); campaigns[manifest.KeyCampaignPrefix+id].Key == "" {
			errs = errors.Join(errs, a.cleanUp(ctx, id))
		}
	}
	return errs
}

// requestAge is the age at which a request that its sender has not removed is removed.
const requestAge = 10 * time.Minute

// scanRecord restores, archives or enters one campaign. counted means that it has a status.
func (a *Archiver) scanRecord(ctx context.Context, record queue.Change, counted bool) error {
	now := a.cfg.Now()
	if a.seen[record.Key].revision != record.Revision {
		a.seen[record.Key] = sighting{record.Revision, now}
	}
	c, err := board.Parse(strings.TrimPrefix(record.Key, manifest.KeyCampaignPrefix), record.Data)
	if err != nil {
		return nil //nolint:nilerr // the service has logged it
	}
	if c.Request != nil {
		if now.Sub(a.seen[record.Key].at) < requestAge {
			return nil
		}
		return board.IgnoreConflict(a.cfg.Board.DeleteAt(ctx, record.Key, record.Revision))
	}
	if !counted && !board.Active(c) && !a.cfg.Running(c.ID) {
		if err := a.cfg.Recount(ctx, c); err != nil {
			a.cfg.Logger.Warn("could not count the items of an ended campaign", "campaign", c.ID, "reason", err)
		}
	}
	if a.due(c, a.seen[record.Key], now) {
		return a.archive(ctx, c, record.Revision)
	}
	if a.open[c.ID] || board.IsNew(c) {
		return nil // admit enters new campaigns
	}
	if err := a.x.Open(ctx, c); err != nil {
		return err
	}
	a.open[c.ID] = true
	return nil
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
// record changes meanwhile, because the campaign is resumed, the campaign stays on the board. Dead letters, and outcomes that no part of
// the ledger has, stay in their streams.
//
// A crash after any write leaves a state that the next leader completes: record and index are written before the record on the board is
// deleted; the status is deleted last.
func (a *Archiver) archive(ctx context.Context, c *manifest.Campaign, revision uint64) error {
	if err := a.moveToStore(ctx, c, revision); err != nil {
		return fmt.Errorf("archive campaign %s: %w", c.ID, err)
	}
	return nil
}

func (a *Archiver) moveToStore(ctx context.Context, c *manifest.Campaign, revision uint64) error {
	q, err := a.cfg.Inspect(ctx, c.ID)
	if err != nil {
		return err
	}
	if err := q.Drop(ctx); err != nil { // work that a crash has left
		return err
	}
	data, statusRevision, err := a.cfg.Board.Get(ctx, manifest.KeyStatusPrefix+c.ID)
	if err != nil && !errors.Is(err, queue.ErrNoRecord) {
		return err
	}
	s, err := board.JoinStatus(c, data)
	if err != nil {
		a.cfg.Logger.Warn("the archive has no counts: the status cannot be read", "campaign", c.ID, "reason", err)
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
	err = a.x.Add(ctx, index.Entry{
		ID: c.ID, Number: max(newest.Number+1, 1), State: index.Archived, Output: index.OutputDigest(c.Output), Row: index.Row{
			Phase: c.Phase, Priority: c.Priority, Weight: c.Weight, Counts: s.Status.Counts,
			Submitted: c.Submitted, Finished: c.Finished, Archived: a.cfg.Now().UTC(),
			Seconds: s.Status.Seconds, Cost: s.Status.Cost, Owner: index.OwnerDigest(c.Owner),
		},
	})
	if err != nil {
		return err
	}
	delete(a.open, c.ID) // also after a conflict: the next scan enters the campaign as open again
	err = a.cfg.Board.DeleteAt(ctx, manifest.KeyCampaignPrefix+c.ID, revision)
	if errors.Is(err, queue.ErrConflict) {
		return a.x.Open(ctx, c)
	}
	if err != nil {
		return err
	}
	a.cfg.Logger.Info("archived campaign", "campaign", c.ID, "phase", c.Phase)
	return a.removeStatus(ctx, c.ID, statusRevision)
}

// cleanUp removes the status of a campaign that has left the board. The status is looked up before the record: another leader may
// return the campaign to the board.
func (a *Archiver) cleanUp(ctx context.Context, id string) error {
	_, revision, err := a.cfg.Board.Get(ctx, manifest.KeyStatusPrefix+id)
	if err == nil {
		_, _, err = a.cfg.Board.Get(ctx, manifest.KeyCampaignPrefix+id)
	}
	if !errors.Is(err, queue.ErrNoRecord) {
		return err
	}
	return a.removeStatus(ctx, id, revision)
}

// removeStatus removes the status with a revision, 0 for none.
func (a *Archiver) removeStatus(ctx context.Context, id string, revision uint64) error {
	if revision == 0 {
		return nil
	}
	return board.IgnoreConflict(a.cfg.Board.DeleteAt(ctx, manifest.KeyStatusPrefix+id, revision))
}
