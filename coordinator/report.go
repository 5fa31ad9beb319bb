package coordinator

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"ddiff/internal/coordinator/board"
	"ddiff/internal/coordinator/ledger"
	"ddiff/internal/record"
	"ddiff/internal/report"
	"ddiff/internal/report/aggregate"
	"ddiff/internal/report/result"
	"ddiff/manifest"
	"ddiff/restore/item"
)

// writeReport writes the report of all settled items beside the results, and returns its summary. It logs artifacts
// that cannot be read. With strict, results that are missing from storage are an error, see missingResultsError.
func (r *runner) writeReport(ctx context.Context, strict bool) (_ aggregate.Summary, err error) {
	ctx, span := r.startSpan(ctx, "report")
	defer func() { endSpan(span, err) }()
	if r.outcomes.ledger.Items() == 0 {
		return aggregate.Summary{}, nil
	}
	return r.results.report(ctx, r.rec, r.models.catalogue, r.outcomes.ledger.Items(), r.leftOut.list(), r.results.all(ctx, &r.windows, r.outcomes.ledger, strict))
}

// report writes the report of results, of which so many are planned, and the lists of those that are not done and of the inputs that were left out; nil: they are those of the
// last report.
func (s *results) report(
	ctx context.Context, c *record.Campaign, catalogue manifest.Catalogue, planned int, skips *manifest.Skips, all iter.Seq2[item.Result, error],
) (_ aggregate.Summary, err error) {
	spec := c.Spec
	campaign := report.Campaign{
		Name: spec.Name, Prior: c.Prior.Name, PriorLicence: c.Prior.License,
		Seed: spec.Seed, Planned: planned, Select: spec.Select, Tasks: catalogue.Operators, LeaveOut: true,
	}
	outputs := []result.Output{{Address: spec.Output, Store: s.store}}
	if campaign.Tunings, err = aggregate.ReadTunings(ctx, outputs, catalogue.Methods); err != nil {
		s.log.Warn("the report does not say which settings were tuned on its images", "reason", err)
	}
	if skips == nil {
		last, err := result.LeftOut(ctx, outputs, c.ID)
		if err != nil {
			return aggregate.Summary{}, err
		}
		skips = &last
	}
	campaign.Skipped = *skips
	failures := newFailureList(s.store, c.ID)
	summary, err := report.Write(ctx, s.store, campaign, failures.watch(ctx, result.WithScores(ctx, outputs, all)))
	if errors.Is(err, result.ErrScores) {
		s.log.Warn("the report lacks the scores of ddiff score", "reason", err)
		failures = newFailureList(s.store, c.ID)
		summary, err = report.Write(ctx, s.store, campaign, failures.watch(ctx, all))
	}
	if err == nil || errors.Is(err, result.ErrIncomplete) {
		err = errors.Join(failures.finish(ctx, *skips), err)
	}
	if errors.Is(err, result.ErrIncomplete) {
		s.log.Warn("the report is incomplete", "reason", err)
		return summary, nil
	}
	if err != nil {
		return summary, fmt.Errorf("write report: %w", err)
	}
	return summary, nil
}

// restoreMissing makes items with missing results pending and publishes them, except in a campaign that is to be cancelled.
// If an item's result was missing before, the campaign pauses: the workers need a person.
func (r *runner) restoreMissing(ctx context.Context, missing missingResultsError) error {
	r.log.Warn("results are missing from storage", "items", len(missing))
	repeated := slices.ContainsFunc(missing, r.outcomes.ledger.WasMissing)
	if _, err := r.rounds.start(ctx, r.outcomes.ledger, ledger.Round{Missing: true, Items: missing}); err != nil || board.WantsCancel(r.rec) {
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
