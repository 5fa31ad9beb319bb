package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"ddiff/coordinator/board"
	"ddiff/coordinator/ledger"
	"ddiff/coordinator/report"
	"ddiff/coordinator/shard"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/restore/prior"
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
	Catalogue shard.Catalogue
	// Keep selects the items of the campaign that run; see shard.Config. Optional.
	Keep func(it *manifest.Item) bool
	// Read is called for each window that was read, before its items are published: with the number of items so far,
	// the number of solver steps of the pending ones when they were read, and whether the dataset is complete.
	// Optional.
	Read func(items, steps int, complete bool)
	// Finished is called for each item that reaches its final state, in one goroutine with Read. found means that the
	// item needed no work, because the store has its result. Optional.
	Finished func(res manifest.Result, found bool)
	// Skipped is called for each file of the dataset that is not an image. It is called concurrently with the others.
	// Optional.
	Skipped func(path string)
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
	copies map[ledger.Identity][]place // the other items of pending identities
	copied []copied                    // settled, and not reported yet
	recent *shard.Window               // the window that was read last
	steps  int                         // solver steps of the items to restore
}

// NewRun checks the configuration.
func NewRun(cfg RunConfig) (*Run, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure run: %w", err)
	}
	if cfg.Read == nil {
		cfg.Read = func(int, int, bool) {}
	}
	if cfg.Finished == nil {
		cfg.Finished = func(manifest.Result, bool) {}
	}
	run := &Run{cfg: cfg, copies: map[ledger.Identity][]place{}}
	service := cfg.service()
	service.run = &run.cfg
	s, err := New(service)
	if err != nil {
		return nil, err
	}
	c := board.NewRecord(cfg.Spec, board.Order{}, s.cfg.Now())
	c.Phase, c.Released, c.Prior = manifest.PhaseRunning, true, priorFile(&cfg.Prior.Description)
	run.runner = newRunner(s, c)
	run.runner.rec, run.runner.ledger, run.runner.items = c, ledger.New(), run
	return run, nil
}

// Process reads the dataset, publishes every item that has no stored result, and settles outcomes until every item has
// its final state. When ctx ends first, it returns ctx's error.
//
// A problem of the dataset as a whole is returned as [manifest.Rows] reports it.
func (r *Run) Process(ctx context.Context) error {
	c := r.runner.rec
	data, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("start campaign %s: %w", c.ID, err)
	}
	if _, err := r.cfg.Board.Create(ctx, manifest.KeyCampaignPrefix+c.ID, data); err != nil {
		return fmt.Errorf("start campaign %s: %w", c.ID, err)
	}
	err = r.runner.process(ctx, c)
	if errors.Is(err, errEnded) {
		return nil
	}
	return err
}

// Counts returns the number of items by state. Items of windows that were not read are not counted.
func (r *Run) Counts() manifest.Counts { return r.runner.ledger.Total(0, false) }

// Close settles the items whose outcome Process has not seen, writes the report of the items that are settled, and
// returns its summary. Call it after the worker has ended, also when Process returned an error. If Process ended before
// the dataset was read, and the store has a report of more restored items, Close keeps that report and returns no summary.
func (r *Run) Close(ctx context.Context) (report.Summary, error) {
	defer r.runner.endTrace(ctx, r.runner.rec.Phase)
	if r.runner.ledger.Open() > 0 && r.runner.queue != nil {
		following, stop := context.WithCancel(ctx)
		defer stop()
		r.runner.outcomes.start(following, r.runner.queue, r.runner.s.cfg.Now())
		if err := r.runner.catchUp(following); err != nil {
			r.runner.log.Warn("could not read the last outcomes", "reason", err)
		}
		if err := r.runner.settleListed(ctx); err != nil {
			return report.Summary{}, err
		}
	}
	if r.keepsReport(ctx) {
		r.runner.log.Warn("the dataset was not read to its end; the stored report has more items and is kept")
		return report.Summary{}, nil
	}
	return r.runner.writeReport(ctx)
}

// keepsReport reports whether a run that did not read the whole dataset finds a stored report of more restored items. It
// must not replace that report: it has not looked for the other results.
func (r *Run) keepsReport(ctx context.Context) bool {
	if r.runner.windows.complete {
		return false
	}
	var old report.Summary
	data, err := r.cfg.Store.Get(ctx, report.KeySummaryJSON)
	return err == nil && json.Unmarshal(data, &old) == nil && old.Done > r.Counts().Done
}
