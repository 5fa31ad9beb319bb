package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/ledger"
	"ddiff/internal/coordinator/shard"
	"ddiff/internal/queue"
	"ddiff/internal/record"
	"ddiff/internal/report"
	"ddiff/internal/report/aggregate"
	"ddiff/internal/restore/prior"
	"ddiff/manifest"
	"ddiff/restore/item"
	"ddiff/storage"
)

// RunConfig describes a [Run]. Fields without a stated default are required.
type RunConfig struct {
	// Spec is a valid campaign, Prior its score model.
	Spec  *manifest.Spec
	Prior *prior.Prior
	// Board and Open belong to a queue server that has no other campaign.
	Board *queue.Board
	Open  openQueue
	// Scratch has the windows during the run. It must be empty.
	Scratch storage.Store
	// Store has the results and the report.
	Store storage.Store
	// Sources reads the files of the dataset, Rows its entries. Default of Rows: manifest.Rows.
	Sources sources
	Rows    shard.Rows
	// Catalogue holds the methods and operators. Default: the built-in ones.
	Catalogue manifest.Catalogue
	// Keep selects the items of the campaign that run; see shard.Config. Optional.
	Keep func(it *item.Item) bool
	// Read is called for each window that was read, before its items are published: with the number of items so far,
	// the number of solver steps of the pending ones when they were read, and whether the dataset is complete. It is called again
	// without the steps of an item that failed before its first one. Optional.
	Read func(items, steps int, complete bool)
	// Finished is called for each item that reaches its final state, in one goroutine with Read. found means that the
	// item needed no work, because the store has its result. Optional.
	Finished func(res item.Result, found bool)
	// Reported is called, in the same goroutine, for each report of the results so far: of the first one, and then as often as reports take
	// a twentieth of the time. Nil: there is only the report of Close.
	Reported func()
	// Skipped is called for each file of the dataset that is not an image. It is called concurrently with the others.
	// Optional.
	Skipped func(manifest.Skip)
	// LeftOut are inputs that were left out before the dataset. The report has them, too.
	LeftOut manifest.Skips
	// Now is the clock. Default: time.Now.
	Now    func() time.Time
	Logger *slog.Logger
	Tracer trace.Tracer
}

// Validate names the first field that is missing.
func (c RunConfig) Validate() error {
	switch {
	case c.Spec == nil:
		return errors.New("Spec is missing")
	case c.Prior == nil:
		return errors.New("Prior is missing")
	case c.Scratch == nil:
		return errors.New("Scratch is missing")
	case c.Store == nil:
		return errors.New("Store is missing")
	}
	return c.service().Validate()
}

// service is the configuration of the service that does the work.
func (c RunConfig) service() Config {
	return Config{
		Board: c.Board, Open: c.Open, Store: c.Scratch, Sources: c.Sources, Rows: c.Rows,
		Catalogue: c.Catalogue, Now: c.Now, Logger: c.Logger, Tracer: c.Tracer,
	}
}

// Run runs one campaign in the process of its only worker. Create it with NewRun, call Process and then Close. One
// goroutine at a time may use it.
type Run struct {
	runner *runner
	cfg    RunConfig
	copies map[string][]item.Item // the other items of pending identities
	steps  int                    // solver steps of the items to restore
	grown  bool                   // items were settled since the last report
	due    time.Time              // of the next report
}

const (
	// firstItems is the size of the first window of a Run in items: the first result must not wait for many rows.
	// windowItems is the size of the largest one.
	firstItems  = 256
	windowItems = 2048
	// reportPause is the pause after a report of the results so far, in times of what it took.
	reportPause = 20
	// readAhead is reader.limit of a Run. Reading must not take processor time and memory from the worker, but must end long
	// before the work: the progress needs the total.
	readAhead = 1 << 14
)

// NewRun checks the configuration.
func NewRun(cfg RunConfig) (*Run, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure run: %w", err)
	}
	if cfg.Read == nil {
		cfg.Read = func(int, int, bool) {}
	}
	if cfg.Finished == nil {
		cfg.Finished = func(item.Result, bool) {}
	}
	run := &Run{cfg: cfg, copies: map[string][]item.Item{}}
	s, err := New(cfg.service())
	if err != nil {
		return nil, err
	}
	c := board.NewRecord(cfg.Spec, board.Order{}, s.cfg.Now())
	c.Phase, c.Released, c.Prior = record.PhaseRunning, true, priorFile(&cfg.Prior.Description)
	c.Spec.Budget, c.Spec.Notify = manifest.Budget{}, "" // for clusters
	r := newRunner(s, c)
	r.rec, r.outcomes.ledger, r.results, r.models.prior = c, ledger.New(), results{store: cfg.Store, log: r.log, now: s.cfg.Now}, &cfg.Prior.Description
	r.reader.limit, r.outcomes.watcher = readAhead, run
	r.leftOut.skips = cfg.LeftOut.Clone()
	r.place = place{
		steps:        []step{(*runner).validate, (*runner).checkSpec, (*runner).restoreLedger, (*runner).openSharder},
		finish:       func(*runner, context.Context) error { return errEnded }, // Close writes the report
		settleListed: (*runner).settleRead,
		reading: shard.Config{
			Sources: s.cfg.Sources, Rows: s.cfg.Rows, Now: s.cfg.Now, First: firstItems, Items: windowItems, Keep: cfg.Keep,
			Skipped: func(e manifest.Skip) {
				if r.leftOut.add(e); cfg.Skipped != nil {
					cfg.Skipped(e)
				}
			},
		},
	}
	run.runner = r
	return run, nil
}

// Process reads the dataset, publishes every item that has no stored result, and settles outcomes until every item has
// its final state. When ctx ends first, it returns ctx's error.
//
// A problem of the dataset as a whole is returned as [manifest.Rows] reports it.
func (run *Run) Process(ctx context.Context) error {
	c := run.runner.rec
	if err := run.runner.writer.Create(ctx, c); err != nil {
		return fmt.Errorf("start campaign %s: %w", c.ID, err)
	}
	err := run.runner.process(ctx, c)
	if errors.Is(err, errEnded) {
		return nil
	}
	return err
}

// Counts returns the number of items by state. Items of windows that were not read are not counted.
func (run *Run) Counts() record.Counts { return run.runner.outcomes.ledger.Total(0, false) }

// Close settles the items whose outcome Process has not seen, writes the report of the items that are settled, and
// returns its summary. Call it after the worker has ended, also when Process returned an error. If Process ended before
// the dataset was read, and the store has a report of more restored items, Close keeps that report and returns no summary.
// Items whose stored result is gone are pending from then on.
func (run *Run) Close(ctx context.Context) (aggregate.Summary, error) {
	defer run.runner.endTrace(ctx, run.runner.rec.Phase, false)
	if run.runner.outcomes.ledger.Open() > 0 && run.runner.queue.Queue != nil {
		following, stop := context.WithCancel(ctx)
		defer stop()
		run.runner.outcomes.start(following, run.runner.queue.Queue, run.runner.s.cfg.Now())
		if err := run.runner.catchUp(following); err != nil {
			run.runner.log.Warn("could not read the last outcomes", "reason", err)
		}
		if err := run.runner.settleRead(ctx); err != nil {
			return aggregate.Summary{}, err
		}
	}
	if run.keepsReport(ctx) {
		run.runner.log.Warn("the dataset was not read to its end; the stored report has more items and is kept")
		return aggregate.Summary{}, nil
	}
	summary, err := run.runner.writeReport(ctx, false)
	for _, id := range run.runner.results.missing { // deleted during the run
		run.runner.outcomes.ledger.MarkMissing(id, run.runner.rec.Round)
	}
	return summary, err
}

// keepsReport reports whether a run that did not read the whole dataset finds a stored report of more restored items. It
// must not replace that report: it has not looked for the other results.
func (run *Run) keepsReport(ctx context.Context) bool {
	if run.runner.windows.complete {
		return false
	}
	var old aggregate.Summary
	data, err := run.cfg.Store.Get(ctx, report.KeySummaryJSON)
	return err == nil && json.Unmarshal(data, &old) == nil && old.Done > run.Counts().Done
}

// windowRead is called for a new window before its items are published. It settles the items that have a stored result or a settled
// identity, remembers the other items of pending identities, and reports the window. fresh has the items with a new identity.
func (run *Run) windowRead(ctx context.Context, w *shard.Window, fresh, repeated []item.Item) error {
	r := run.runner
	for _, f := range w.Failed {
		run.cfg.Finished(f, false)
	}
	for _, it := range repeated {
		if r.outcomes.ledger.State(it.ID) == ledger.Pending {
			run.copies[it.ID] = append(run.copies[it.ID], it)
		}
	}
	err := r.results.of(ctx, r.outcomes.ledger, repeated, nil, func(res item.Result) bool {
		run.cfg.Finished(res, res.Outcome == item.OutcomeDone && r.outcomes.ledger.WasFound(res.Item.ID))
		return true
	})
	if err != nil {
		return err
	}
	if err := r.outcomes.settleStored(ctx, &r.results, fresh, r.rec); err != nil {
		return err
	}
	for _, it := range fresh {
		if r.outcomes.ledger.State(it.ID) == ledger.Pending {
			run.steps += stepsOf(it)
		}
	}
	run.cfg.Read(r.outcomes.ledger.Items(), run.steps, w.Last)
	return nil
}

// stepsOf returns the number of solver steps of an item, 0 if it is unknown.
func stepsOf(it item.Item) int {
	var solver struct {
		Steps int `json:"steps"`
	}
	if json.Unmarshal(it.Solver, &solver) != nil {
		return 0
	}
	return solver.Steps
}

// stepped writes the report of the results so far, if it is due. Close repeats one that fails. Before the dataset is read to its end, the store may
// have a report of more results.
func (run *Run) stepped(ctx context.Context) {
	r := run.runner
	begin := r.s.cfg.Now()
	if run.cfg.Reported == nil || !run.grown || !r.windows.complete || r.outcomes.ledger.Open() == 0 || begin.Before(run.due) {
		return
	}
	run.grown = false
	if _, err := r.writeReport(ctx, false); err != nil {
		r.log.Debug("could not write the report of the results so far", "reason", err)
	} else {
		run.cfg.Reported()
	}
	end := r.s.cfg.Now()
	run.due = end.Add(reportPause * end.Sub(begin))
}

// itemSettled reports all items of a settled identity.
func (run *Run) itemSettled(res item.Result, found bool) {
	run.grown = run.grown || !found
	run.cfg.Finished(res, found)
	id := res.Item.ID
	for _, res.Item = range run.copies[id] {
		run.cfg.Finished(res, found)
	}
	delete(run.copies, id)
	if res.Attempt > 0 && res.Outcome != item.OutcomeDone && res.Seconds == 0 {
		run.steps -= stepsOf(res.Item)
		run.cfg.Read(run.runner.outcomes.ledger.Items(), run.steps, run.runner.windows.complete)
	}
}
