package report

import (
	"context"
	"errors"
	"iter"

	"ddiff/coordinator/report/aggregate"
	"ddiff/coordinator/report/entry"
	"ddiff/coordinator/report/figure"
	"ddiff/coordinator/report/result"
	"ddiff/coordinator/report/selection"
	"ddiff/manifest"
)

// WriteFigures stores the statistical figures of results, in any order, and no other file of a report: NAME.svg, NAME.png and
// NAME.csv of each figure, and [KeyCaptions]. Figures of an earlier call that this call does not write are
// removed. It returns the number of figures.
//
// It reads at most 2048 traces for one line of a convergence figure, and 16384 for all of them; [Write] reads 128 and 1024. If
// a listed trace cannot be read, the error wraps [result.ErrIncomplete], and all figures are there.
func WriteFigures(ctx context.Context, store result.Files, campaign Campaign, results iter.Seq2[manifest.Result, error]) (n int, err error) {
	rule, err := selection.Parse(string(campaign.Select))
	if err != nil {
		return 0, err
	}
	ordered, err := entry.Collect(results, campaign.Tasks, false)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, ordered.Close()) }()
	summary, err := aggregate.SummarizeEntries(ordered, campaign.Tasks, rule, campaign.Tunings)
	if err != nil {
		return 0, err
	}
	drawn, err := figure.Draw(ctx, store, "", summary, ordered.All())
	if err != nil {
		return 0, err
	}
	return len(drawn.Stored), result.Incomplete(drawn.Lost)
}
