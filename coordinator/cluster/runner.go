package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"ddiff/coordinator/shard"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/restore/prior"
	"ddiff/storage"
)

// runner takes one campaign through its phases. All its fields below the line belong to the
// goroutine of run.
type runner struct {
	s   *Service
	id  string
	log *slog.Logger

	mu       sync.Mutex
	newest   *manifest.Campaign // not taken yet
	revision uint64             // of the newest record that was offered, or written here
	wake     chan struct{}
	cancel   context.CancelFunc

	// ---
	rec      *manifest.Campaign
	queue    *queue.Queue
	ledger   *ledger
	prior    *prior.Prior
	results  storage.Store // the campaign's own part of the store
	sharder  *shard.Sharder
	windows  <-chan made // the next window, when the manifest is not complete
	stored   int         // windows in storage
	next     shard.Position
	whole    bool          // the last window is in storage
	doubtful int           // windows before this one may have items with results in storage
	first    *shard.Window // the first window, while the campaign is not released
	canary   []string      // identities of the canary items that are under way
	checked  *manifest.Checked
	events   <-chan event
	seen     uint64 // the last entry of the result stream that was entered
	pace     pace
	stalled  time.Time
	status   manifest.Status
	unfollow context.CancelFunc // ends the goroutine behind events
	tick     <-chan time.Time   // time to look at the queue, also while outcomes pour in
}

// event is an outcome from the result stream, or the stream's end.
type event struct {
	result queue.Result
	err    error
}

func newRunner(s *Service, c *manifest.Campaign) *runner {
	return &runner{s: s, id: c.ID, log: s.cfg.Logger.With("campaign", c.ID), wake: make(chan struct{}, 1)}
}

// offer hands the runner a record, unless it has a newer one: what it writes itself comes
// back to it later.
func (r *runner) offer(c *manifest.Campaign, revision uint64) {
	r.mu.Lock()
	if revision <= r.revision {
		r.mu.Unlock()
		return
	}
	r.newest, r.revision = c, revision
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// take gives the newest record if there is something to do for it.
func (r *runner) take() *manifest.Campaign {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.newest
	r.newest = nil
	if c == nil || !active(c) {
		return nil
	}
	return c
}

// again makes the last record be taken once more, unless a newer one is there.
func (r *runner) again() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.newest == nil {
		r.newest = r.rec
	}
}

// errEnded: the campaign has ended, as it should.
var errEnded = errors.New("campaign has ended")

// rejection is an error that is the campaign's own fault: it is rejected with it.
type rejection struct{ error }

func (e rejection) Unwrap() error { return e.error }

// run takes the campaign from wherever it stands to its end. Nil means that it has ended.
func (r *runner) run(ctx context.Context, c *manifest.Campaign) error {
	inner, stop := context.WithCancel(ctx)
	defer stop()
	r.rec = c
	tick := time.NewTicker(r.s.cfg.Tick)
	defer tick.Stop()
	r.tick = tick.C
	err := r.begin(inner)
	for err == nil {
		err = r.step(inner)
	}
	var refused rejection
	if errors.As(err, &refused) {
		err = r.reject(ctx, refused.Error())
	}
	if errors.Is(err, errEnded) {
		return nil
	}
	return err
}

// begin opens what the campaign needs and brings the ledger up to date.
func (r *runner) begin(ctx context.Context) error {
	r.ledger, r.canary, r.checked, r.stalled, r.pace = newLedger(), nil, nil, time.Time{}, pace{}
	results, err := storage.NewPrefixed(r.s.cfg.Store, r.rec.Output)
	if err != nil {
		return rejection{fmt.Errorf("output: %w", err)}
	}
	r.results = results
	if err := r.rec.Spec.Validate(shard.Vocabulary()); err != nil {
		return rejection{err}
	}
	if err := r.openPrior(ctx); err != nil {
		return err
	}
	if err := r.restore(ctx); err != nil {
		return err
	}
	if err := r.openSharder(ctx); err != nil {
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
	if resumed && r.rec.Released {
		_, err := r.reconcile(ctx) // what was dropped is published again
		return err
	}
	return nil
}

// openQueue opens the campaign's queue and begins to follow its outcomes.
func (r *runner) openQueue(ctx context.Context) error {
	q, err := r.s.cfg.Open(ctx, r.id, r.rec.Spec.Attempts)
	if err != nil {
		return fmt.Errorf("open queue: %w", err)
	}
	if r.unfollow != nil {
		r.unfollow()
	}
	ctx, r.unfollow = context.WithCancel(ctx)
	events := make(chan event, 256)
	r.queue, r.events, r.seen = q, events, 0
	go func() {
		for res, err := range q.Results(ctx, 0) {
			select {
			case events <- event{res, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return nil
}

// step does what is next, waits for what comes, and enters it.
func (r *runner) step(ctx context.Context) error {
	if err := r.obey(ctx); err != nil {
		return err
	}
	if err := r.advance(ctx); err != nil {
		return err
	}
	windows := r.windows
	if !r.wantsWindow() {
		windows = nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-r.wake:
		r.learn()
		return nil
	case e := <-r.events:
		return r.enter(e)
	case m := <-windows:
		return r.keep(ctx, m)
	case <-r.tick:
		return r.look(ctx)
	}
}

// learn takes over what people have written on the board.
func (r *runner) learn() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.newest; c != nil {
		r.newest = nil
		r.rec.Wanted, r.rec.Commands, r.rec.Weight, r.rec.Priority = c.Wanted, c.Commands, c.Weight, c.Priority
	}
}

// errMoved: another coordinator, which leads as well for a moment, has taken the campaign to
// another phase.
var errMoved = errors.New("another coordinator has the campaign in another phase")

// save changes the coordinator's part of the record, on the board and here. When another
// coordinator has changed the phase meanwhile its record is taken over, and nothing is
// written.
func (r *runner) save(ctx context.Context, change func(c *manifest.Campaign)) error {
	phase := r.rec.Phase
	c, revision, err := swap(ctx, r.s.cfg.Board, r.id, func(c *manifest.Campaign) error {
		if c.Phase != r.rec.Phase {
			return errSame
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
		r.newest, r.revision = nil, revision // what people wrote before is in it
	}
	r.mu.Unlock()
	if c.Phase != phase {
		r.log.Info("campaign", "phase", c.Phase, "reason", c.Reason)
		return mirror(ctx, r.s.cfg.Store, c)
	}
	return nil
}

// enter puts one outcome into the ledger, and those that are there already with it.
func (r *runner) enter(e event) error {
	for {
		if e.err != nil {
			return fmt.Errorf("follow results: %w", e.err)
		}
		r.seen = e.result.Seq
		if err := r.settle(e.result); err != nil {
			r.log.Error("passed over an outcome that cannot be read", "item", e.result.ID, "reason", err)
		}
		select {
		case e = <-r.events:
		default:
			return nil
		}
	}
}

// settle enters an outcome.
func (r *runner) settle(res queue.Result) error {
	if res.ID == manifest.IDPreflight {
		if res.Round < r.rec.Round {
			return nil
		}
		return r.settlePreflight(res.Payload)
	}
	var outcome struct {
		Outcome  manifest.Outcome `json:"outcome"`
		Reason   string           `json:"reason"`
		Finished time.Time        `json:"finished"`
	}
	if err := json.Unmarshal(res.Payload, &outcome); err != nil {
		return err
	}
	if n := r.ledger.settle(res.ID, res.Round, stateOf(outcome.Outcome), outcome.Reason); n > 0 {
		r.pace.add(r.s.cfg.Now(), outcome.Finished, n)
		if outcome.Outcome != manifest.OutcomeDone {
			r.log.Warn("item was not restored", "item", res.ID, "outcome", outcome.Outcome, "reason", outcome.Reason)
		}
	}
	return nil
}

// reject ends the campaign with a reason. Resuming it begins anew.
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
		return errMoved
	}
	if r.queue != nil {
		if err := r.queue.Drop(ctx); err != nil {
			return fmt.Errorf("drop work: %w", err)
		}
	}
	if err := r.tell(ctx, 0); err != nil {
		return err
	}
	return errEnded
}
