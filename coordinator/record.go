package coordinator

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"

	"ddiff/coordinator/board"
	"ddiff/manifest"
)

// record is the record of a campaign on the board, and the reads and writes of its runner. offer, nextRecord, begin and stop
// are safe for concurrent use; the runner alone uses rec and the others.
type record struct {
	id    string
	cfg   *Config
	audit *audit
	log   *slog.Logger
	rec   *manifest.Campaign // as the runner has read or written it

	mu       sync.Mutex
	offered  *manifest.Campaign // the newest record that the runner has not read
	revision uint64             // of the newest record that was offered or written
	wake     chan struct{}      // has an element after an offer
	cancel   context.CancelFunc
	deleted  bool // the campaign was deleted after the newest record
}

// offer passes a record to the runner. It ignores records that are not newer than the last one: the board also delivers
// the runner's own writes.
func (r *record) offer(c *manifest.Campaign, revision uint64) {
	r.mu.Lock()
	if revision <= r.revision {
		r.mu.Unlock()
		return
	}
	r.offered, r.revision, r.deleted = c, revision, false
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// nextRecord returns the newest record if the campaign needs a coordinator, else nil. The newest record may be the one
// that the runner wrote last: that write included the changes of other writers.
func (r *record) nextRecord() *manifest.Campaign {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.rec
	if r.offered != nil {
		c, r.offered = r.offered, nil
	}
	if c == nil || !board.Active(c) {
		return nil
	}
	return c
}

// begin returns a copy of ctx that stop also ends.
func (r *record) begin(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cancel = cancel; r.deleted {
		cancel()
	}
	return ctx, cancel
}

// stop ends the runner of a deleted campaign. Only a later record starts the campaign again.
func (r *record) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.offered, r.deleted = nil, true
	if r.cancel != nil {
		r.cancel()
	}
}

// restart ends the runner, which continues with a record of a board that was restored, whatever its revision.
func (r *record) restart(c *manifest.Campaign, revision uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.offered, r.revision, r.deleted = c, revision, false
	if r.cancel != nil {
		r.cancel()
	}
}

// applyOffered copies the fields that people write from the offered record.
func (r *record) applyOffered() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.offered; c != nil {
		r.offered = nil
		r.rec.Wanted, r.rec.Commands, r.rec.Weight, r.rec.Priority = c.Wanted, c.Commands, c.Weight, c.Priority
		r.rec.Spec.Budget = c.Spec.Budget
	}
}

// storeWanted stores what people want before the campaign acts on it: the store's copy of the record must survive the loss of the board. The reason
// of a pause goes when a person pauses the campaign, which then no longer goes on by itself below a cap, or resumes it.
func (r *record) storeWanted(ctx context.Context) error {
	if board.Recorded(r.rec) {
		return nil
	}
	return r.save(ctx, func(c *manifest.Campaign) {
		if c.Phase == manifest.PhasePaused && !board.WantsCancel(c) && cmp.Or(c.Recorded, manifest.WantRun) != c.Wanted {
			c.Reason = ""
		}
	})
}

// storeBudget stores the budget of an ended campaign, which may need a coordinator for nothing else.
func (r *record) storeBudget(ctx context.Context) error {
	if !r.rec.Phase.Ended() {
		return nil
	}
	if err := r.storeWanted(ctx); err != nil {
		return err
	}
	if !board.Active(r.rec) {
		return errEnded
	}
	return nil
}

// adopt notes the record that the board has at a revision.
func (r *record) adopt(c *manifest.Campaign, revision uint64) {
	r.rec = c
	r.mu.Lock()
	defer r.mu.Unlock()
	if revision > r.revision {
		r.offered, r.revision = nil, revision // c includes earlier changes of other writers
	}
}

// errOlderBoard: the board was restored from a backup. The runner opens the campaign again, with the record of the store.
var errOlderBoard = errors.New("the board has an older record of the campaign")

// errPhaseChanged: a second leader has moved the campaign to another phase.
var errPhaseChanged = errors.New("another coordinator has changed the phase of the campaign")

// save changes the coordinator's fields of the record, on the board and here. If another coordinator has changed the
// phase, save adopts that record and writes nothing.
//
// The store has a copy of the record with its last phase, wanted state and precision, which is written first: no coordinator opens an
// ended campaign to complete an interrupted save.
func (r *record) save(ctx context.Context, change func(c *manifest.Campaign)) error {
	return r.saveIf(ctx, func(*manifest.Campaign) bool { return true }, change)
}

// saveIf is save that adopts the record and writes nothing unless the condition holds.
func (r *record) saveIf(ctx context.Context, condition func(c *manifest.Campaign) bool, change func(c *manifest.Campaign)) error {
	phase, copied := r.rec.Phase, 0
	store := func(c *manifest.Campaign) error {
		copied = max(copied, c.Stored) + 1
		c.Recorded, c.RecordedBudget, c.Stored = c.Wanted, c.Spec.Budget, copied
		return board.Store(ctx, r.cfg.Store, c)
	}
	c, revision, err := board.UpdateRevision(ctx, r.cfg.Board, r.id, func(c *manifest.Campaign) error {
		if c.Stored < r.rec.Stored || !c.Submitted.Equal(r.rec.Submitted) { // another submission with this id was deleted
			r.rec = c // which the runner compares with the store when it opens the campaign again
			return errOlderBoard
		}
		if c.Phase != phase || !condition(c) {
			if copied > 0 { // of a record that is none
				return store(c)
			}
			return board.ErrUnchanged
		}
		c.Heard = max(c.Heard, r.audit.of(r.id))
		c.Output = r.rec.Output // users may write the record
		if r.rec.Prior.SHA256 != "" {
			c.Prior = r.rec.Prior
		}
		if len(r.rec.Operators) > 0 {
			c.Operators = r.rec.Operators
		}
		change(c)
		if c.Phase == phase && board.Recorded(c) && copied == 0 {
			return nil
		}
		if c.Phase != phase {
			c.Changes++
		}
		return store(c) // again if the board has a newer record
	})
	if err != nil {
		return err
	}
	r.adopt(c, revision)
	if c.Phase != phase {
		r.log.Info("campaign", "phase", c.Phase, "reason", c.Reason)
	}
	return nil
}
