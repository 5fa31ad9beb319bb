package coordinator

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"ddiff/internal/coordinator/board"
	"ddiff/internal/record"
)

// campaign is the record of a campaign, the reads and writes of its runner, and what people ask of the runner. offer, ask, nextRecord, begin and stop
// are safe for concurrent use; the runner alone uses rec and the others.
type campaign struct {
	id     string
	cfg    *Config
	writer *board.Writer
	log    *slog.Logger
	rec    *record.Campaign // as the runner has read or written it

	mu      sync.Mutex
	offered *record.Campaign // the newest record that the runner has not read
	newest  version          // of the records that were offered or written
	asked   []*command       // in their order
	wake    chan struct{}    // has an element after an offer or a command
	cancel  context.CancelFunc
	deleted bool // the campaign was deleted after the newest record
}

// version tells which of two records of a campaign is newer.
type version struct {
	submitted int64
	number    int
}

func versionOf(c *record.Campaign) version { return version{c.Submitted.UnixNano(), c.Number} }

// above reports whether a version is newer than another one.
func (v version) above(other version) bool {
	return v.submitted > other.submitted || v.submitted == other.submitted && v.number > other.number
}

// offer passes a record to the runner. It ignores records that are not newer than the last one: the board also delivers
// the runner's own writes.
func (r *campaign) offer(c *record.Campaign) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if v := versionOf(c); !v.above(r.newest) && !r.deleted {
		return
	}
	r.offered, r.newest, r.deleted = c, versionOf(c), false
	r.signal()
}

// signal wakes the runner.
func (r *campaign) signal() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// nextRecord returns the newest record if the campaign needs a coordinator, else nil. The newest record may be the one
// that the runner wrote last: that write included the changes of other writers.
func (r *campaign) nextRecord() *record.Campaign {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.rec
	if r.offered != nil {
		c, r.offered = r.offered, nil
	}
	if c == nil || !board.Active(c) && len(r.asked) == 0 {
		r.refuseAsked(errGone)
		return nil
	}
	return c
}

// begin returns a copy of ctx that stop also ends.
func (r *campaign) begin(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cancel = cancel; r.deleted {
		cancel()
	}
	return ctx, cancel
}

// stop ends the runner of a deleted campaign. Only a later record starts the campaign again.
func (r *campaign) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.offered, r.deleted = nil, true
	if r.cancel != nil {
		r.cancel()
	}
}

// applyOffered takes over a record that a verb or another leader has written.
func (r *campaign) applyOffered() {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.offered
	if c == nil || !c.Submitted.Equal(r.rec.Submitted) || c.Phase != r.rec.Phase {
		return // of another leader: save or the next opening takes it over
	}
	r.offered = nil
	r.rec = r.withModels(c)
}

// withModels returns a record with what the runner knows of the models, which its next write stores.
func (r *campaign) withModels(c *record.Campaign) *record.Campaign {
	next := *c
	if r.rec.Prior.Opened() {
		next.Prior = r.rec.Prior
	}
	if len(r.rec.Operators) > 0 {
		next.Operators = r.rec.Operators
	}
	return &next
}

// adopt notes the newest record.
func (r *campaign) adopt(c *record.Campaign) {
	r.rec = c
	r.mu.Lock()
	defer r.mu.Unlock()
	if v := versionOf(c); v.above(r.newest) {
		r.newest = v
	}
	if r.offered != nil && !versionOf(r.offered).above(versionOf(c)) {
		r.offered = nil
	}
}

// errReplaced: the campaign was deleted and submitted again. The runner opens it again.
var errReplaced = errors.New("the campaign was deleted and submitted again")

// errPhaseChanged: a second leader has moved the campaign to another phase.
var errPhaseChanged = errors.New("another coordinator has changed the phase of the campaign")

// save changes the coordinator's fields of the record, in the store, on the board and here. If another coordinator has changed the
// phase, save adopts that record and writes nothing.
func (r *campaign) save(ctx context.Context, change func(c *record.Campaign)) error {
	return r.saveIf(ctx, func(*record.Campaign) bool { return true }, change)
}

// saveIf is save that adopts the record and writes nothing unless the condition holds.
func (r *campaign) saveIf(ctx context.Context, condition func(c *record.Campaign) bool, change func(c *record.Campaign)) error {
	before := r.rec
	c, err := r.writer.Change(ctx, r.id, before, func(c *record.Campaign) error {
		switch {
		case !c.Submitted.Equal(before.Submitted):
			return errReplaced
		case c.Phase != before.Phase || !condition(c):
			return board.ErrUnchanged
		}
		*c = *r.withModels(c)
		if change(c); c.Phase != before.Phase {
			c.Changes++
		}
		return nil
	})
	if c != nil && !errors.Is(err, errReplaced) {
		r.adopt(c)
	}
	if err == nil && c.Phase != before.Phase {
		r.log.Info("campaign", "phase", c.Phase, "reason", c.Reason)
	}
	return err
}
