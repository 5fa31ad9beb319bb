package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"ddiff/coordinator/board"
	"ddiff/coordinator/ledger"
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
	offered  *manifest.Campaign // the newest record that the runner has not read
	revision uint64             // of the newest record that was offered or written
	wake     chan struct{}
	cancel   context.CancelFunc
	deleted  bool // the campaign was deleted after the newest record

	// ---
	rec    *manifest.Campaign
	queue  *queue.Queue
	paused bool // the queue delivers nothing
	ledger *ledger.Ledger
	// opening: the ledger does not have all stored windows and outcomes yet.
	opening bool

	parts   *ledger.Parts // of the ledger in the store; nil for a Run
	results storage.Store // the campaign's part of the store

	mark         startMark // as written; zero without one
	attempted    startMark // whose write failed; zero without one
	markRevision uint64
	suspect      bool // holds Service.suspects

	prior      *prior.Description
	closePrior func()          // nil before the prior is open
	catalogue  shard.Catalogue // with the operator files of the campaign

	sharder    *shard.Sharder
	windows    <-chan shardedWindow        // the next window; nil while the sharder does not read
	reader     *lifecycle.Service          // fills windows
	stored     int                         // number of windows in storage
	next       shard.Position              // where the next window begins
	complete   bool                        // the last window is in storage
	sound      int                         // number of the first window with items, -1 without one
	warning    string                      // for the status
	waiting    waiting                     // also set by the reader
	unverified int                         // items of windows below this number may have stored results
	copies     map[ledger.Identity][]place // of a Run: the other items of pending identities
	copied     []copied                    // of a Run: settled, and not reported yet
	recent     *shard.Window               // of a Run: the window that was read last
	steps      int                         // of a Run: solver steps of the items to restore

	missing missingResultsError // of the last report
	retries map[string]round    // rounds of pending commands, by command
	canary  []string            // identities of the published canary items
	checked *manifest.Checked

	events   <-chan event
	follower *lifecycle.Service // fills events
	seen     uint64             // sequence number of the last outcome in the ledger
	behind   int                // outcomes that follow it in the stream, when it was read
	caught   bool               // the ledger has the outcomes that the last status counts
	followed time.Time          // since when the follower reads
	counted  uint64             // sequence number of the last outcome in ddiff.ledger.Items(), or before the runner began
	counts   bool               // counted is set
	pace     pace
	progress time.Time            // of the last outcome, or of the start
	fault    *manifest.Fault      // pauses the campaign
	faulty   map[string]time.Time // last report of a fault, by worker
	stalled  time.Time            // since when the queue holds too few items
	status   manifest.Status
	tick     <-chan time.Time // due time of the next check of the queue
	ticked   bool             // since the last window
}

func newRunner(s *Service, c *manifest.Campaign) *runner {
	return &runner{s: s, id: c.ID, log: s.cfg.Logger.With("campaign", c.ID, "trace_id", traceOf(c).TraceID().String()), wake: make(chan struct{}, 1), catalogue: s.cfg.Catalogue}
}

// offer passes a record to the runner. It ignores records that are not newer than the last one: the board also delivers
// the runner's own writes.
func (r *runner) offer(c *manifest.Campaign, revision uint64) {
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
func (r *runner) nextRecord() *manifest.Campaign {
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
func (r *runner) begin(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cancel = cancel; r.deleted {
		cancel()
	}
	return ctx, cancel
}

// stop ends the runner of a deleted campaign. Only a later record starts the campaign again.
func (r *runner) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.offered, r.deleted = nil, true
	if r.cancel != nil {
		r.cancel()
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
		if ctx.Err() != nil && r.queue != nil && r.folds() {
			r.parts.FoldAtExit(ctx, r.seen)
		}
		if r.closePrior != nil {
			r.closePrior()
		}
		r.unmarkStart(ctx)
	}()
	r.rec = c
	r.s.gauges.open(r.id, c)
	tick := time.NewTicker(r.s.cfg.Tick)
	defer tick.Stop()
	r.tick = tick.C
	err := r.openTraced(ctx)
	for err == nil {
		err = r.step(ctx)
	}
	return err
}

// openTraced is open in a span of the campaign.
func (r *runner) openTraced(ctx context.Context) error {
	_, span := r.startSpan(ctx, "open") // the queue's calls in open have spans of their own
	err := r.open(ctx)
	endSpan(span, err)
	return err
}

// open opens what the campaign needs and rebuilds the ledger.
func (r *runner) open(ctx context.Context) error {
	r.ledger, r.canary, r.checked, r.stalled, r.pace, r.seen = ledger.New(), nil, nil, time.Time{}, pace{}, 0
	r.progress, r.fault, r.faulty = r.s.cfg.Now(), nil, map[string]time.Time{}
	r.opening = true
	if err := r.openResults(); err != nil {
		return err
	}
	if err := r.rec.Spec.Validate(r.s.cfg.Catalogue.Vocabulary()); err != nil {
		return rejection{err}
	}
	if err := r.admit(ctx); err != nil {
		return err
	}
	if err := r.markStart(ctx); err != nil {
		return err
	}
	if err := r.checkOutput(ctx); err != nil {
		return err
	}
	if err := r.openPrior(ctx); err != nil {
		return err
	}
	if err := r.openOperators(ctx); err != nil {
		return err
	}
	if err := r.catalogue.Check(&r.rec.Spec, r.prior); err != nil {
		return rejection{err}
	}
	if err := r.restoreLedger(ctx); err != nil {
		return err
	}
	if err := r.restorePrecision(ctx); err != nil {
		return err
	}
	if err := r.openSharder(); err != nil {
		return err
	}
	r.opening = false
	if r.complete { // the dataset is read
		if err := r.noteProgress(ctx); err != nil {
			return err
		}
	}
	if err := r.openQueue(ctx); err != nil {
		return err
	}
	if err := r.skipCounted(ctx); err != nil {
		return err
	}
	if err := r.settleRecalled(ctx); err != nil {
		return err
	}
	if r.rec.Phase.Ended() {
		return r.reopenEnded(ctx)
	}
	return nil
}

// openResults opens the store of the campaign's results.
func (r *runner) openResults() error {
	if run := r.s.cfg.run; run != nil {
		r.results = run.Store
		return nil
	}
	if err := r.rec.CheckOutput(); err != nil {
		return rejection{err}
	}
	results, err := storage.NewPrefixed(r.s.cfg.Store, r.rec.Output)
	if err != nil {
		return rejection{fmt.Errorf("output: %w", err)}
	}
	r.results = results
	return nil
}

// openQueue opens the campaign's queue, pauses or resumes it as wanted, and follows its outcomes.
func (r *runner) openQueue(ctx context.Context) error {
	q, err := r.s.cfg.Open(ctx, r.id, r.rec.Spec.Attempts)
	if err != nil {
		return fmt.Errorf("open queue: %w", err)
	}
	r.queue = q
	// A coordinator may have died after it paused the queue.
	if err := r.pauseQueue(ctx, r.rec.Wanted == manifest.WantPause); err != nil {
		return fmt.Errorf("open queue: %w", err)
	}
	if r.parts != nil {
		stream, last, err := q.ResultStream(ctx)
		if err != nil {
			return fmt.Errorf("compare the result stream with the ledger: %w", err)
		}
		r.seen = r.parts.Follow(stream, last, r.seen)
	}
	r.follow(ctx)
	return nil
}

// folds reports whether the runner stores its ledger.
func (r *runner) folds() bool { return r.parts != nil && r.rec.Released }

// step performs the due work, then waits for one event and handles it.
func (r *runner) step(ctx context.Context) error {
	if err := r.applyWanted(ctx); err != nil {
		return err
	}
	if err := r.choosePrecision(ctx); err != nil {
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
//
// The store has a copy of the record in its last phase. The copy of an ended campaign is written first: no coordinator
// opens such a campaign to complete an interrupted save.
func (r *runner) save(ctx context.Context, change func(c *manifest.Campaign)) error {
	return r.saveIf(ctx, func(*manifest.Campaign) bool { return true }, change)
}

// saveIf is save that adopts the record and writes nothing unless the condition holds.
func (r *runner) saveIf(ctx context.Context, condition func(c *manifest.Campaign) bool, change func(c *manifest.Campaign)) error {
	phase := r.rec.Phase
	c, revision, err := board.UpdateRevision(ctx, r.s.cfg.Board, r.id, func(c *manifest.Campaign) error {
		if c.Phase != phase || !condition(c) {
			return board.ErrUnchanged
		}
		c.Output = r.rec.Output // users may write the record
		if r.rec.Prior.SHA256 != "" {
			c.Prior = r.rec.Prior
		}
		if len(r.rec.Operators) > 0 {
			c.Operators = r.rec.Operators
		}
		c.Precision = cmp.Or(r.rec.Precision, c.Precision)
		change(c)
		if c.Phase.Ended() && c.Phase != phase {
			return board.Store(ctx, r.s.cfg.Store, c)
		}
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
	if c.Phase == phase {
		return nil
	}
	r.log.Info("campaign", "phase", c.Phase, "reason", c.Reason)
	if c.Phase.Ended() {
		return nil
	}
	return board.Store(ctx, r.s.cfg.Store, c)
}
