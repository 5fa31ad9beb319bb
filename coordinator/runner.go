package coordinator

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"ddiff/internal/coordinator/shard"
	"ddiff/internal/record"
	"ddiff/manifest"
	"ddiff/storage"
)

// runner takes one campaign through its phases. Except for the offers to its record, only the goroutine of run uses it.
type runner struct {
	campaign
	place
	s *Service

	starts  starts
	doubt   doubt
	models  models
	results results // in the store
	reader  reader  // of the dataset
	leftOut leftOut
	windows windows // in storage
	opening bool    // the ledger does not have all stored windows and outcomes yet

	queue    work
	tick     <-chan time.Time // due time of the next check of the queue
	outcomes outcomes
	faults   faults
	trial    trial
	rounds   rounds
	hold     string  // why the cap of the owner makes the campaign wait; empty: it does not
	holdNear string  // a warning before that
	capShare float64 // used share of the cap; 0 without one
	// slack is the time from the expected end to the deadline in seconds, if it is known.
	slack      float64
	slackKnown bool

	judged      map[shard.Touched]bool // by replaceTouched
	overwritten overwritten

	status published
}

func newRunner(s *Service, c *record.Campaign) *runner {
	log := s.cfg.Logger.With("campaign", c.ID, "trace_id", traceOf(c).TraceID().String())
	r := &runner{
		campaign: campaign{id: c.ID, cfg: &s.cfg, writer: s.writer, log: log, wake: make(chan struct{}, 1)}, s: s, place: cluster,
		models:   models{catalogue: s.cfg.Catalogue, store: s.cfg.Store, files: s.cfg.Models, priors: s.priors, log: log},
		reader:   reader{tick: s.cfg.Tick, now: s.cfg.Now, log: log, limit: math.MaxInt},
		queue:    work{metrics: s.cfg.Metrics},
		outcomes: outcomes{watcher: unwatched{}, now: s.cfg.Now, log: log, metrics: s.cfg.Metrics},
	}
	r.rounds, r.status.campaign = rounds{campaign: &r.campaign, retries: map[string]int{}}, &r.campaign
	r.starts = starts{campaign: &r.campaign, health: s.health, suspects: s.suspects}
	r.reading = shard.Config{
		Sources: s.cfg.Sources, Rows: s.cfg.Rows, Items: s.cfg.Window, Settle: s.cfg.Settle, Now: s.cfg.Now, Wait: r.reader.await,
		Skipped: func(e manifest.Skip) {
			log.Debug("skipped an entry of the dataset", "path", e.Path, "reason", e.Reason)
			r.leftOut.add(e)
		},
	}
	return r
}

// errEnded ends the loop of a campaign that has reached its end.
var errEnded = errors.New("campaign has ended")

// run takes the campaign from its current phase to its end. It returns nil when the campaign has ended.
func (r *runner) run(ctx context.Context, c *record.Campaign) error {
	err := r.process(ctx, c)
	var rejected rejection
	if errors.As(err, &rejected) {
		err = r.rejectOrDoubt(ctx, brief(rejected.Error()))
	}
	if errors.Is(err, errEnded) {
		return nil
	}
	return err
}

// process opens the campaign and handles events until an error, which is errEnded at the end.
func (r *runner) process(ctx context.Context, c *record.Campaign) error {
	defer func() {
		r.outcomes.stop()
		r.reader.service.Stop()
		r.starts.takeBack(ctx)
	}()
	r.rec = c
	r.s.gauges.open(r.id, c)
	tick := time.NewTicker(r.s.cfg.Tick)
	defer tick.Stop()
	r.tick = tick.C
	_, span := r.startSpan(ctx, "open") // the queue's calls in open have spans of their own
	err := r.open(ctx)
	endSpan(span, err)
	for err == nil {
		err = r.step(ctx)
	}
	return err
}

// open opens what the campaign needs and rebuilds the ledger.
func (r *runner) open(ctx context.Context) error {
	r.outcomes.reset()
	r.trial, r.queue.stalled, r.queue.unsent, r.faults = trial{}, time.Time{}, nil, faults{}
	r.opening = true
	for _, step := range r.steps {
		if err := step(r, ctx); err != nil {
			return err
		}
	}
	r.opening = false
	unknown := r.notePublished()
	if r.windows.complete { // the dataset is read
		if err := r.starts.progress(ctx, true); err != nil {
			return err
		}
	}
	for _, step := range []func(ctx context.Context) error{r.openQueue, r.skipCounted} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	switch {
	case r.rec.Phase.Ended():
		return r.reopenEnded(ctx)
	case unknown:
		return r.restoreLost(ctx)
	}
	return nil
}

// checkSpec checks the settings of the campaign against its models.
func (r *runner) checkSpec(context.Context) error {
	known := r.models.catalogue
	known.Prior = r.models.prior
	if err := r.rec.Spec.Validate(known); err != nil {
		return rejection{err}
	}
	if address := r.rec.Spec.Notify; address != "" {
		if err := r.s.cfg.Notifier.Check(address); err != nil {
			return rejection{err}
		}
	}
	return nil
}

// validate checks the campaign without its models.
func (r *runner) validate(context.Context) error {
	if err := r.rec.Spec.Validate(r.s.cfg.Catalogue); err != nil {
		return rejection{err}
	}
	return nil
}

// openResults opens the store of the campaign's results.
func (r *runner) openResults(context.Context) error {
	err := r.rec.CheckOutput()
	var store *storage.Prefixed
	if err == nil {
		if store, err = storage.NewPrefixed(r.s.cfg.Store, r.rec.Output); err != nil {
			err = fmt.Errorf("output: %w", err)
		}
	}
	if err != nil {
		return rejection{fmt.Errorf("%w; delete the campaign and submit it with another --output", err)}
	}
	r.results = results{store: store, log: r.log, now: r.s.cfg.Now}
	return nil
}

// openQueue opens the campaign's queue, pauses or resumes it as wanted, and follows its outcomes.
func (r *runner) openQueue(ctx context.Context) error {
	q, err := r.s.cfg.Open(ctx, r.id, r.rec.Spec.Attempts)
	if err != nil {
		return fmt.Errorf("open queue: %w", err)
	}
	r.queue.Queue = q
	// A coordinator may have died after it paused the queue. A campaign that waits for a cap is paused although it is to run.
	if err := r.queue.pause(ctx, r.rec.Wanted == record.WantPause || r.rec.Phase == record.PhasePaused); err != nil {
		return fmt.Errorf("open queue: %w", err)
	}
	stream, last, err := q.ResultStream(ctx)
	if err != nil {
		return fmt.Errorf("compare the result stream with the ledger: %w", err)
	}
	r.outcomes.seen = r.outcomes.parts.Follow(stream, last, r.outcomes.seen)
	r.outcomes.start(ctx, q, r.s.cfg.Now())
	return nil
}

// step performs the due work, then waits for one event and handles it.
func (r *runner) step(ctx context.Context) error {
	r.outcomes.watcher.stepped(ctx)
	if err := r.applyWanted(ctx); err != nil {
		return err
	}
	if err := r.advance(ctx); err != nil {
		return err
	}
	windows := r.nextWindow(ctx)
	if r.waits(windows) { // for others: the campaign has survived its start
		if err := r.starts.progress(ctx, false); err != nil {
			return err
		}
	}
	select { // outcomes go before windows, so that the ledger keeps up
	case e := <-r.outcomes.events:
		return r.enterEvents(e)
	default:
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-r.wake:
		r.applyOffered()
		return nil
	case e := <-r.outcomes.events:
		return r.enterEvents(e)
	case w, ok := <-windows:
		if !ok {
			r.reader.windows = nil
			return nil
		}
		return r.storeWindow(ctx, w)
	case <-r.tick:
		if r.reader.ticked = true; r.queue.quiet(r.idle(), r.s.gauges.count()) {
			return nil
		}
		return r.checkQueue(ctx)
	}
}

// waits reports whether the campaign reads nothing because it waits for workers, for a person or for the server of its dataset.
func (r *runner) waits(windows <-chan shardedWindow) bool {
	return windows == nil && r.rec.Phase != record.PhaseRunning || r.reader.waiting.reason() != ""
}

// idle reports whether the campaign waits for workers or a person, and nothing has changed since the last status.
func (r *runner) idle() bool {
	return r.rec.Phase != record.PhaseRunning && r.status.last.Phase == r.rec.Phase && r.status.last.Counts.Running == 0
}
