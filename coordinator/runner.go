package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"ddiff/coordinator/shard"
	"ddiff/internal/lifecycle"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/restore/prior"
	"ddiff/storage"
)

// runner takes one campaign through its phases. Only the goroutine of run uses the fields below the line.
type runner struct {
	s   *Service
	id  string
	log *slog.Logger

	mu       sync.Mutex
	offered  *manifest.Campaign // the newest record that the runner has not taken
	revision uint64             // of the newest record that was offered or written
	wake     chan struct{}
	cancel   context.CancelFunc

	// ---
	rec     *manifest.Campaign
	queue   *queue.Queue
	ledger  *ledger
	results storage.Store // the campaign's part of the store

	prior      *prior.Description
	closePrior func() // nil before the prior is open

	sharder    *shard.Sharder
	windows    <-chan shardedWindow // the next window; nil while the sharder does not read
	reader     *lifecycle.Service   // fills windows
	stored     int                  // number of windows in storage
	next       shard.Position       // where the next window begins
	complete   bool                 // the last window is in storage
	sound      int                  // number of the first window with items, -1 without one
	warning    string               // for the status
	waiting    waiting              // also set by the reader
	unverified int                  // items of windows below this number may have stored results
	copies     map[identity][]place // of a Run: the other items of pending identities
	copied     []copied             // of a Run: settled, and not reported yet
	recent     *shard.Window        // of a Run: the window that was read last
	steps      int                  // of a Run: solver steps of the items to restore

	canary  []string // identities of the published canary items
	checked *manifest.Checked

	events   <-chan event
	follower *lifecycle.Service // fills events
	seen     uint64             // sequence number of the last outcome in the ledger
	pace     pace
	stalled  time.Time // since when the queue holds too few items
	status   manifest.Status
	tick     <-chan time.Time // due time of the next check of the queue
	ticked   bool             // since the last window
}

// event is an outcome from the result stream, or the error that ended the stream.
type event struct {
	result queue.Result
	err    error
}

func newRunner(s *Service, c *manifest.Campaign) *runner {
	return &runner{s: s, id: c.ID, log: s.cfg.Logger.With("campaign", c.ID), wake: make(chan struct{}, 1)}
}

// offer passes a record to the runner. It ignores records that are not newer than the last one: the board also delivers
// the runner's own writes.
func (r *runner) offer(c *manifest.Campaign, revision uint64) {
	r.mu.Lock()
	if revision <= r.revision {
		r.mu.Unlock()
		return
	}
	r.offered, r.revision = c, revision
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// takeOffered removes and returns the offered record, or nil when the campaign needs nothing.
func (r *runner) takeOffered() *manifest.Campaign {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.offered
	r.offered = nil
	if c == nil || !active(c) {
		return nil
	}
	return c
}

// requeue offers the current record again unless a newer one was offered.
func (r *runner) requeue() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.offered == nil {
		r.offered = r.rec
	}
}

// errEnded ends the loop of a campaign that has reached its end.
var errEnded = errors.New("campaign has ended")

// rejection is an error of the campaign itself, such as a missing dataset. The campaign is rejected with it.
type rejection struct{ error }

func (e rejection) Unwrap() error { return e.error }

// run takes the campaign from its current phase to its end. It returns nil when the campaign has ended.
func (r *runner) run(ctx context.Context, c *manifest.Campaign) error {
	err := r.process(ctx, c)
	var rejected rejection
	if errors.As(err, &rejected) {
		err = r.reject(ctx, rejected.Error())
	}
	if errors.Is(err, errEnded) {
		return nil
	}
	return err
}

// process opens the campaign and handles events until an error, which is errEnded at the end.
func (r *runner) process(ctx context.Context, c *manifest.Campaign) error {
	defer func() {
		r.follower.Stop()
		r.reader.Stop()
		if r.closePrior != nil {
			r.closePrior()
		}
	}()
	r.rec = c
	tick := time.NewTicker(r.s.cfg.Tick)
	defer tick.Stop()
	r.tick = tick.C
	err := r.open(ctx)
	for err == nil {
		err = r.step(ctx)
	}
	return err
}

// open opens what the campaign needs and rebuilds the ledger.
func (r *runner) open(ctx context.Context) error {
	r.ledger, r.canary, r.checked, r.stalled, r.pace, r.seen = newLedger(), nil, nil, time.Time{}, pace{}, 0
	if err := r.openResults(); err != nil {
		return err
	}
	if err := r.rec.Spec.Validate(r.s.cfg.Catalogue.Vocabulary()); err != nil {
		return rejection{err}
	}
	if err := r.admit(ctx); err != nil {
		return err
	}
	if err := r.openPrior(ctx); err != nil {
		return err
	}
	if err := r.s.cfg.Catalogue.Check(&r.rec.Spec, r.prior); err != nil {
		return rejection{err}
	}
	if err := r.restoreLedger(ctx); err != nil {
		return err
	}
	if err := r.openSharder(); err != nil {
		return err
	}
	resumed := r.rec.Phase.Ended() && r.rec.Phase != manifest.PhaseFinished && r.rec.Wanted == manifest.WantRun
	if resumed {
		if err := r.save(ctx, func(c *manifest.Campaign) { c.Phase, c.Reason, c.Round = manifest.PhaseQueued, "", c.Round+1 }); err != nil {
			return err
		}
	}
	if err := r.openQueue(ctx); err != nil {
		return err
	}
	if err := r.settleRecalled(ctx); err != nil {
		return err
	}
	if resumed && r.rec.Released {
		_, err := r.reconcile(ctx) // publishes the items that the cancellation dropped
		return err
	}
	return nil
}

// openResults opens the store of the campaign's results.
func (r *runner) openResults() error {
	if run := r.s.cfg.run; run != nil {
		r.results = run.Store
		return nil
	}
	results, err := storage.NewPrefixed(r.s.cfg.Store, r.rec.Output)
	if err != nil {
		return rejection{fmt.Errorf("output: %w", err)}
	}
	r.results = results
	return nil
}

// openQueue opens the campaign's queue and follows its outcomes.
func (r *runner) openQueue(ctx context.Context) error {
	q, err := r.s.cfg.Open(ctx, r.id, r.rec.Spec.Attempts)
	if err != nil {
		return fmt.Errorf("open queue: %w", err)
	}
	r.queue = q
	r.follow(ctx)
	return nil
}

// follow delivers the outcomes that the ledger does not have to r.events until ctx ends.
func (r *runner) follow(ctx context.Context) {
	r.follower.Stop()
	events := make(chan event, 256)
	r.events = events
	q, after := r.queue, r.seen
	r.follower = lifecycle.Go(ctx, func(ctx context.Context) error {
		for res, err := range q.Results(ctx, after) {
			select {
			case events <- event{res, err}:
			case <-ctx.Done():
				return ctx.Err()
			}
			if err != nil {
				return err
			}
		}
		return ctx.Err()
	})
}

// step performs the due work, then waits for one event and handles it.
func (r *runner) step(ctx context.Context) error {
	if err := r.applyWanted(ctx); err != nil {
		return err
	}
	if err := r.advance(ctx); err != nil {
		return err
	}
	windows := r.nextWindow(ctx)
	select { // outcomes go before windows, so that the ledger keeps up
	case e := <-r.events:
		return r.settleEvents(e)
	default:
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-r.wake:
		r.applyOffered()
		return nil
	case e := <-r.events:
		return r.settleEvents(e)
	case w, ok := <-windows:
		if !ok {
			r.windows = nil
			return nil
		}
		return r.storeWindow(ctx, w)
	case <-r.tick:
		r.ticked = true
		return r.checkQueue(ctx)
	}
}

// applyOffered copies the fields that people write from the offered record.
func (r *runner) applyOffered() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.offered; c != nil {
		r.offered = nil
		r.rec.Wanted, r.rec.Commands, r.rec.Weight, r.rec.Priority = c.Wanted, c.Commands, c.Weight, c.Priority
	}
}

// errPhaseChanged: a second leader has moved the campaign to another phase.
var errPhaseChanged = errors.New("another coordinator has changed the phase of the campaign")

// save changes the coordinator's fields of the record, on the board and here. If another coordinator has changed the
// phase, save adopts that record and writes nothing.
func (r *runner) save(ctx context.Context, change func(c *manifest.Campaign)) error {
	phase := r.rec.Phase
	c, revision, err := updateRecord(ctx, r.s.cfg.Board, r.id, func(c *manifest.Campaign) error {
		if c.Phase != phase {
			return errUnchanged
		}
		change(c)
		return nil
	})
	if err != nil {
		return err
	}
	r.rec = c
	r.mu.Lock()
	if revision > r.revision {
		r.offered, r.revision = nil, revision // c includes earlier changes of other writers
	}
	r.mu.Unlock()
	if c.Phase != phase {
		r.log.Info("campaign", "phase", c.Phase, "reason", c.Reason)
		return storeRecord(ctx, r.s.cfg.Store, c)
	}
	return nil
}

// settleEvents enters an outcome, and all others that have arrived, into the ledger.
func (r *runner) settleEvents(e event) error {
	for {
		if e.err != nil {
			return errors.Join(fmt.Errorf("follow results: %w", e.err), r.announceCopies())
		}
		r.seen = e.result.Seq
		if err := r.settleEvent(e.result); err != nil {
			return err
		}
		select {
		case e = <-r.events:
		default:
			return r.announceCopies()
		}
	}
}

// settleEvent enters one outcome into the ledger. It logs and skips outcomes that it cannot read.
func (r *runner) settleEvent(e queue.Result) error {
	if e.ID == manifest.IDPreflight {
		if e.Round >= r.rec.Round {
			r.settlePreflight(e.Payload)
		}
		return nil
	}
	var res manifest.Result
	if err := r.decodeOutcome(e.Payload, &res); err != nil {
		r.log.Error("skipped an outcome that cannot be read", "item", e.ID, "reason", err)
		return nil
	}
	res.Item.ID = e.ID // an unreadable message has its identity in the header only
	n := r.ledger.settle(e.ID, e.Round, stateOf(res.Outcome), res.Reason)
	if n == 0 {
		return nil
	}
	r.pace.add(r.s.cfg.Now(), res.Finished, n)
	if res.Outcome != manifest.OutcomeDone {
		r.log.Warn("item was not restored", "item", e.ID, "outcome", res.Outcome, "reason", res.Reason)
	}
	return r.announce(res, false)
}

// decodeOutcome reads the payload of a result event. Only a Run gets and needs more than the outcome itself.
func (r *runner) decodeOutcome(payload []byte, res *manifest.Result) error {
	if r.s.cfg.run != nil {
		return json.Unmarshal(payload, res)
	}
	var outcome manifest.Event
	err := json.Unmarshal(payload, &outcome)
	res.Outcome, res.Reason, res.Finished = outcome.Outcome, outcome.Reason, outcome.Finished
	return err
}

// reject ends the campaign with a reason. Resuming the campaign starts it again.
func (r *runner) reject(ctx context.Context, reason string) error {
	err := r.save(ctx, func(c *manifest.Campaign) {
		c.Phase, c.Reason, c.Finished = manifest.PhaseRejected, reason, r.s.cfg.Now().UTC()
		if c.Wanted == manifest.WantRun {
			c.Wanted = manifest.WantPause
		}
	})
	if err != nil {
		return err
	}
	if r.rec.Phase != manifest.PhaseRejected {
		return errPhaseChanged
	}
	if r.queue != nil {
		if err := r.queue.Drop(ctx); err != nil {
			return fmt.Errorf("drop work: %w", err)
		}
	}
	if err := r.publishStatus(ctx, 0); err != nil {
		return err
	}
	return errEnded
}
