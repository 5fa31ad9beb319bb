package report

import (
	"context"
	"iter"

	"ddiff/internal/report/aggregate"
	"ddiff/internal/report/entry"
	"ddiff/internal/report/figure"
	"ddiff/internal/report/result"
	"ddiff/restore/item"
)

// WriteFigures stores the statistical figures of results, in any order, and no other file of a report: NAME.svg and
// NAME.csv of each figure, and [KeyCaptions]. Figures of an earlier call that this call does not write are
// removed. It returns the number of figures.
//
// It reads at most 2048 traces for one line of a convergence figure; [Write] reads 128. If
// a listed trace cannot be read, the error wraps [result.ErrIncomplete], and all figures are there.
func WriteFigures(ctx context.Context, store result.Files, campaign Campaign, results iter.Seq2[item.Result, error]) (n int, err error) {
	set, err := entry.Collect(results, campaign.Tasks, campaign.Select, false)
	if err != nil {
		return 0, err
	}
	summary := aggregate.SummarizeEntries(set, campaign.Tasks, campaign.Tunings)
	drawn, err := figure.Draw(ctx, store, "", summary)
	if err != nil {
		return 0, err
	}
	return len(drawn.Stored), result.Incomplete(drawn.Lost)
}
