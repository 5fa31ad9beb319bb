package coordinator

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"ddiff/coordinator/board"
	"ddiff/coordinator/ledger"
	"ddiff/coordinator/report"
	"ddiff/coordinator/report/aggregate"
	"ddiff/coordinator/report/result"
	"ddiff/coordinator/shard"
	"ddiff/restore/item"
)

// writeReport writes the report of all settled items beside the results, and returns its summary. It logs artifacts
// that cannot be read. With strict, results that are missing from storage are an error, see missingResultsError.
func (r *runner) writeReport(ctx context.Context, strict bool) (_ aggregate.Summary, err error) {
	ctx, span := r.startSpan(ctx, "report")
	defer func() { endSpan(span, err) }()
	if r.ledger.Items() == 0 {
		return aggregate.Summary{}, nil
	}
	s := r.rec.Spec
	campaign := report.Campaign{
		Name: s.Name, Prior: r.rec.Prior.Name, PriorLicence: r.rec.Prior.License,
		Seed: s.Seed, Planned: r.ledger.Items(), Select: s.Select, Tasks: r.models.catalogue.Operators, LeaveOut: true,
	}
	outputs := []result.Output{{Address: s.Output, Store: r.results}}
	if campaign.Tunings, err = aggregate.ReadTunings(ctx, outputs, r.models.catalogue.Methods); err != nil {
		r.log.Warn("the report does not say which settings were tuned on its images", "reason", err)
	}
	failures := newFailureList(r.results, r.rec.ID)
	summary, err := report.Write(ctx, r.results, campaign, failures.watch(ctx, result.WithScores(ctx, outputs, r.reported(ctx, strict))))
	if errors.Is(err, result.ErrScores) {
		r.log.Warn("the report lacks the scores of ddiff score", "reason", err)
		failures = newFailureList(r.results, r.rec.ID)
		summary, err = report.Write(ctx, r.results, campaign, failures.watch(ctx, r.reported(ctx, strict)))
	}
	if err == nil || errors.Is(err, result.ErrIncomplete) {
		err = errors.Join(failures.finish(ctx), err)
	}
	if errors.Is(err, result.ErrIncomplete) {
		r.log.Warn("the report is incomplete", "reason", err)
		return summary, nil
	}
	if err != nil {
		return summary, fmt.Errorf("write report: %w", err)
	}
	return summary, nil
}

// missingResultsError lists the items that are done according to their outcomes, and whose results are missing from storage: a
// worker had another store, its credentials were stolen, or someone has deleted the results.
type missingResultsError []string

func (m missingResultsError) Error() string {
	return fmt.Sprintf("%d results that workers have reported are missing from the store", len(m))
}

// reported yields the results of a report. With strict, the last pair has missingResultsError if any are missing.
func (r *runner) reported(ctx context.Context, strict bool) iter.Seq2[item.Result, error] {
	return func(yield func(item.Result, error) bool) {
		r.missing = nil
		for res, err := range r.settled(ctx) {
			if !yield(res, err) {
				return
			}
		}
		if len(r.missing) > 0 && strict {
			yield(item.Result{}, r.missing)
		}
	}
}

// restoreMissing makes items with missing results pending and publishes them, except in a campaign that is to be cancelled.
// If an item's result was missing before, the campaign pauses: the workers need a person.
func (r *runner) restoreMissing(ctx context.Context, missing missingResultsError) error {
	r.log.Warn("results are missing from storage", "items", len(missing))
	repeated := slices.ContainsFunc(missing, r.ledger.WasMissing)
	if _, err := r.startRound(ctx, ledger.Round{Missing: true, Items: missing}); err != nil || board.WantsCancel(r.rec) {
		return err
	}
	if repeated { // before a worker that caused the loss leases the items again
		if err := r.queue.pause(ctx, true); err != nil {
			return err
		}
	}
	again := make(map[string]bool, len(missing))
	for _, id := range missing {
		again[id] = true
	}
	if _, err := r.republish(ctx, func(id string) bool { return again[id] }); err != nil || !repeated {
		return err
	}
	return r.pauseBecause(ctx, missing.Error()+", although their items were restored twice; check the store of the workers, then resume")
}

// settled yields the result of every settled item in the order of the manifest. It reads at
// most loadChunk results at once. The last pair has the error, if any.
func (r *runner) settled(ctx context.Context) iter.Seq2[item.Result, error] {
	return func(yield func(item.Result, error) bool) {
		err := r.windows.each(ctx, func(w *shard.Window) error {
			failures := map[int]item.Result{} // by index in the manifest
			for _, f := range w.Failed {
				failures[f.Item.Index] = f
				w.Items = append(w.Items, f.Item)
			}
			slices.SortFunc(w.Items, func(a, b item.Item) int { return a.Index - b.Index })
			return r.settledOf(ctx, w.Items, failures, func(res item.Result) bool {
				res.Item = res.Item.Public()
				return yield(res, nil)
			})
		})
		if err != nil && !errors.Is(err, errStop) {
			yield(item.Result{}, err)
		}
	}
}

// errStop: the reader of a stream wants no more.
var errStop = errors.New("stop")

// settledOf yields the results of the settled items among some. failures has those of items that cannot be restored, by index in the
// manifest.
func (r *runner) settledOf(ctx context.Context, items []item.Item, failures map[int]item.Result, yield func(item.Result) bool) error {
	for chunk := range slices.Chunk(items, loadChunk) {
		found, err := r.load(ctx, chunk, func(it *item.Item) bool {
			_, failed := failures[it.Index]
			return !failed && r.ledger.State(it.ID) == ledger.Done
		})
		if err != nil {
			return err
		}
		for i, it := range chunk {
			res, ok := failures[it.Index]
			if !ok {
				if res, ok = r.settledResult(it, found[i]); !ok {
					continue
				}
			}
			if !yield(res) {
				return errStop
			}
		}
	}
	return nil
}

// settledResult is the result of an item: the stored one if it is done, else that of the ledger. It returns false for
// pending items.
func (r *runner) settledResult(it item.Item, s stored) (item.Result, bool) {
	switch state := r.ledger.State(it.ID); {
	case state == ledger.Pending:
		return item.Result{}, false
	case state == ledger.Failed || state == ledger.Dead:
		res := item.Result{Schema: item.SchemaVersion, Item: it, Outcome: item.OutcomeFailed, Reason: r.ledger.Reason(it.ID)}
		if state == ledger.Dead {
			res.Outcome = item.OutcomeDead
		}
		return res, true
	case s.damage != nil:
		r.log.Error("stored result cannot be read", "item", it.Name, "reason", s.damage)
		return r.failedResult(it, s.damage.Error()), true
	case !s.found:
		r.missing = append(r.missing, it.ID)
		key := item.Key(it.ID, item.FileResult)
		r.log.Error("stored result is missing", "item", it.Name, "key", key)
		return r.failedResult(it, fmt.Sprintf("read %s: it is missing; run again", key)), true
	}
	return s.result, true
}
