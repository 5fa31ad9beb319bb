package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"ddiff/coordinator/report"
	"ddiff/coordinator/shard"
	"ddiff/manifest"
	"ddiff/queue"
	"ddiff/restore/solver"
	"ddiff/storage"
)

// Coordinator runs one campaign. Make it with New.
type Coordinator struct {
	cfg     Config
	ledger  *ledger
	started time.Time
}

// New checks the configuration.
func New(cfg Config) (*Coordinator, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure coordinator: %w", err)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Finished == nil {
		cfg.Finished = func(manifest.Result, bool) {}
	}
	return &Coordinator{cfg: cfg, ledger: newLedger()}, nil
}

// Counts says where the items are. It may be called when no other method runs.
func (c *Coordinator) Counts() Counts { return c.ledger.counts }

// Shard reads the dataset, enters every item of the manifest, looks which of them have a
// result in storage, and publishes the others.
func (c *Coordinator) Shard(ctx context.Context) (err error) {
	c.started = c.cfg.Now()
	ctx, span := c.cfg.Tracer.Start(ctx, "shard", trace.WithAttributes(attribute.String("ddiff.campaign", c.cfg.Spec.ID())))
	defer func() { end(span, err) }()

	if err := c.read(ctx); err != nil {
		return err
	}
	if err := c.find(ctx); err != nil {
		return err
	}
	span.SetAttributes(attribute.Int("ddiff.items", c.ledger.counts.Items), attribute.Int("ddiff.pending", c.ledger.counts.Pending))
	return c.publish(ctx)
}

func end(span trace.Span, err error) {
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}

// read enters the items of the dataset, task by task, so that neighbours in the queue can
// share a batch: everything is one window.
func (c *Coordinator) read(ctx context.Context) error {
	sharder, err := shard.New(shard.Config{
		Spec: c.cfg.Spec, Prior: c.cfg.Prior, Sources: c.cfg.Sources, Rows: c.cfg.Rows, Skipped: c.cfg.Skipped,
		Items: math.MaxInt, Now: c.cfg.Now,
	})
	if err != nil {
		return err
	}
	for w, err := range sharder.Windows(ctx, shard.Position{}) {
		if err != nil {
			return err
		}
		for _, r := range w.Failed {
			c.cfg.Logger.Error("item cannot be restored", "item", r.Item.Name, "task", r.Item.Task, "reason", r.Reason)
			c.ledger.expect(r.Item)
			c.settle(r, false)
		}
		for _, it := range w.Items {
			c.ledger.expect(it)
		}
	}
	return nil
}

func (c *Coordinator) settle(r manifest.Result, found bool) {
	for _, it := range c.ledger.settle(r) {
		r.Item = it
		c.cfg.Finished(r, found)
	}
}

// find settles the pending items that have a result in storage. A result that cannot be read
// fails its item: nothing is written over it, and the other items go on.
func (c *Coordinator) find(ctx context.Context) error {
	for _, it := range c.ledger.pending() {
		key := manifest.ItemKey(it.ID, manifest.FileResult)
		data, err := c.cfg.Store.Get(ctx, key)
		if errors.Is(err, storage.ErrNotFound) {
			continue
		}
		if err != nil {
			return fmt.Errorf("look for the result of item %s: %w", it.Name, err)
		}
		r, err := readResult(data, it)
		if err != nil {
			c.settle(manifest.Result{
				Schema: manifest.SchemaVersion, Item: it, Outcome: manifest.OutcomeFailed, Finished: c.cfg.Now().UTC(),
				Reason: fmt.Sprintf("read %s: %v; remove the file and run again", key, err),
			}, false)
			continue
		}
		c.settle(r, true)
	}
	return nil
}

// readResult reads a stored result and holds it against the item it should be of.
func readResult(data []byte, it manifest.Item) (manifest.Result, error) {
	var r manifest.Result
	if err := json.Unmarshal(data, &r); err != nil {
		return r, err
	}
	if r.Item.ID != it.ID || r.Outcome != manifest.OutcomeDone {
		return r, errors.New("it is not the result of this item")
	}
	// The same work may have been asked for by another campaign, under another name.
	r.Item = it
	return r, nil
}

// publish sends the pending items to the queue, in place of what an earlier run left there.
func (c *Coordinator) publish(ctx context.Context) (err error) {
	ctx, span := c.cfg.Tracer.Start(ctx, "publish", trace.WithSpanKind(trace.SpanKindProducer))
	defer func() { end(span, err) }()
	if err := c.cfg.Queue.Reset(ctx); err != nil {
		return fmt.Errorf("empty the queue: %w", err)
	}
	var batch []queue.Work
	for _, it := range c.ledger.pending() {
		data, err := json.Marshal(it)
		if err != nil {
			return fmt.Errorf("publish item %s: %w", it.Name, err)
		}
		batch = append(batch, queue.Work{Class: shard.Class(it), ID: it.ID, Payload: data})
	}
	if len(batch) == 0 {
		return nil
	}
	if err := c.cfg.Queue.PublishBatch(ctx, batch); err != nil {
		return fmt.Errorf("publish %d items: %w", len(batch), err)
	}
	return nil
}

// PendingSteps is the number of solver steps that the pending items need in all.
func (c *Coordinator) PendingSteps() int {
	n := 0
	for _, it := range c.ledger.pending() {
		var cfg solver.Config
		// What was resolved when the item was made can be read back.
		if json.Unmarshal(it.Solver, &cfg) == nil {
			n += cfg.Steps
		}
	}
	return n
}

// Follow enters results as they come, until every item has its final state or ctx ends. In
// both cases it returns nil; Counts tells the difference.
func (c *Coordinator) Follow(ctx context.Context) error {
	if c.ledger.counts.Pending == 0 {
		return nil
	}
	for event, err := range c.cfg.Queue.Results(ctx, 0) {
		if err != nil {
			return fmt.Errorf("follow results: %w", err)
		}
		var r manifest.Result
		if err := json.Unmarshal(event.Payload, &r); err != nil {
			return fmt.Errorf("read result event of item %s: %w", event.ID, err)
		}
		// A message that could not be read at all carries its identity outside.
		r.Item.ID = event.ID
		c.settle(r, false)
		if c.ledger.counts.Pending == 0 {
			return nil
		}
	}
	return nil
}

// Close looks once more in storage for results whose events did not arrive, and writes the
// report of what is there.
func (c *Coordinator) Close(ctx context.Context) error {
	if err := c.find(ctx); err != nil {
		return err
	}
	s := c.cfg.Spec
	rule, err := report.ParseRule(string(s.Select))
	if err != nil {
		return err
	}
	_, err = report.Write(ctx, c.cfg.Store, report.Campaign{
		Name: s.Name, Preset: s.Preset, Prior: c.cfg.Prior.Card.Name, PriorLicence: c.cfg.Prior.Card.License,
		Steps: s.Steps, Sigma: s.Sigma, Seed: s.Seed, Select: rule,
		Started: c.started, Finished: c.cfg.Now(),
	}, c.results())
	if errors.Is(err, report.ErrIncomplete) {
		c.cfg.Logger.Warn("the report lacks a part", "reason", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// Summary has the figures of the final results, by task and method.
func (c *Coordinator) Summary() (report.Summary, error) {
	rule, err := report.ParseRule(string(c.cfg.Spec.Select))
	if err != nil {
		return report.Summary{}, err
	}
	return report.Summarize(c.results(), rule)
}

// results streams the results of the ledger.
func (c *Coordinator) results() iter.Seq2[manifest.Result, error] {
	return func(yield func(manifest.Result, error) bool) {
		for _, r := range c.ledger.all() {
			if !yield(r, nil) {
				return
			}
		}
	}
}
