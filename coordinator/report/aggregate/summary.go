// Package aggregate computes the means of a report as plain values: a [Row] for each problem and approach, paired comparisons, and which
// settings were chosen on the rows' own images. It writes nothing. A further figure of a row, which is no metric, is a field of [Row] and one line in newCell.
package aggregate

import (
	"cmp"
	"iter"

	"ddiff/coordinator/report/entry"
	"ddiff/coordinator/report/selection"
	"ddiff/coordinator/report/statistic"
	"ddiff/restore/item"
	"ddiff/restore/operator"
)

// Summarize computes the summary of results, in any order, without writing files. An empty rule means first. Tunings say
// which settings were chosen on which images; nil knows of none.
func Summarize(results iter.Seq2[item.Result, error], tasks operator.Set, rule selection.Rule, tunings *Tunings) (Summary, error) {
	set, err := entry.Collect(results, tasks, rule, false)
	if err != nil {
		return Summary{}, err
	}
	return SummarizeEntries(set, tasks, tunings), nil
}

// Summary has the means of a campaign, one row per problem and approach.
type Summary struct {
	// Rule combined the runs of each measurement into one figure.
	Rule selection.Rule `json:"rule"`
	// Oracle reports that the rule used the ground truth.
	Oracle bool `json:"oracle"`

	// Planned is the number of items that the campaign has, and Items of those with an outcome: Done + Failed + Dead. An
	// interrupted campaign has fewer outcomes than planned items.
	Planned int `json:"planned"`
	Items   int `json:"items"`
	Done    int `json:"done"`
	Failed  int `json:"failed"`
	Dead    int `json:"dead"`

	// MetricIDs are the versions of the scores, by metric.
	MetricIDs map[string]string `json:"metric_ids,omitempty"`

	// Varying names the properties in which the rows differ.
	Varying Varying `json:"varying,omitzero"`
	// Rows are ordered by task, as in the paper, then by parameters, noise level, size, method, prior and settings.
	Rows []Row `json:"rows"`
	// Comparisons pair the approaches to each problem.
	Comparisons []Comparison `json:"comparisons,omitempty"`

	// ScoredLater are the metrics whose scores were computed after solving, sorted; Unscored has a note for each that lacks
	// scores.
	ScoredLater []string `json:"-"`
	Unscored    []string `json:"-"`
}

// cell has one row of the summary and its group.
type cell struct {
	row   Row
	group *entry.Group
}

// newCell computes the row of a group.
func newCell(g *entry.Group, label string, metrics []string, tunings *Tunings) *cell {
	c := &cell{row: Row{Problem: g.Problem, Approach: g.Approach, Label: label}, group: g}
	var choice *TunedImages
	for _, m := range g.Measurements {
		c.row.Items += m.Items
		c.row.Failed += m.Failed
		c.row.Dead += m.Dead
		c.row.countFinished(m.Done, !m.Copy)
		c.row.Preset = cmp.Or(c.row.Preset, m.Preset)
		if len(m.Done) > 0 {
			if choice == nil {
				choice = tunings.Of(m.Entry)
			}
			choice.count(m.Image)
		}
	}
	c.row.TunedImages, c.row.PresetImages = choice.images()
	finished := g.Finished()
	c.row.Measurements = len(finished)
	var images []uint64
	for _, m := range finished {
		c.row.Runs += len(m.Done)
		c.row.Chosen = c.row.Chosen || len(m.Done) > 1
		images = append(images, m.Image)
	}
	estimate := func(of func(s *selection.Scores) float64) statistic.Estimate {
		values := make([]float64, len(finished))
		for i, m := range finished {
			values[i] = of(&m.Combined)
		}
		return statistic.ClusterMean(values, images)
	}
	c.row.Baseline = estimate((*selection.Scores).Baseline)
	c.row.Gain = estimate((*selection.Scores).Gain)
	c.row.Seconds = estimate(func(s *selection.Scores) float64 { return s.Seconds })
	c.row.Cost = named(selection.CostNames[:], func(k int) statistic.Estimate {
		return estimate(func(s *selection.Scores) float64 { return s.Cost[k] })
	})
	c.row.Metrics = named(metrics, func(k int) statistic.Estimate {
		return estimate(func(s *selection.Scores) float64 { return s.Of(metrics[k]) })
	})
	c.row.Images = c.row.Seconds.N // each finished run has a time
	return c
}

// named returns estimates by their names, without undefined ones.
func named(names []string, of func(k int) statistic.Estimate) map[string]statistic.Estimate {
	var out map[string]statistic.Estimate
	for k, name := range names {
		if e := of(k); e.N > 0 {
			if out == nil {
				out = make(map[string]statistic.Estimate)
			}
			out[name] = e
		}
	}
	return out
}

// SummarizeEntries computes the means per problem and approach.
func SummarizeEntries(set *entry.Set, tasks operator.Set, tunings *Tunings) Summary {
	var cells []*cell
	for _, g := range set.Groups {
		cells = append(cells, newCell(g, tasks.Label(g.Task), set.Columns.Names(), tunings))
	}
	out := newSummary(attribute(cells), set.Rule)
	out.MetricIDs, out.ScoredLater, out.Unscored = set.Columns.Coverage()
	return out
}

// attribute adds the items that failed before their settings were known to the cell that they would have belonged to,
// if there is exactly one. Others remain rows without figures.
func attribute(cells []*cell) []*cell {
	var out []*cell
	for _, c := range cells {
		if c.row.Cell().Resolved() {
			out = append(out, c)
			continue
		}
		var home *cell
		homes := 0
		for _, other := range cells {
			if c.row.Cell().MayBe(other.row.Cell()) {
				home = other
				homes++
			}
		}
		if homes != 1 {
			out = append(out, c)
			continue
		}
		home.row.Items += c.row.Items
		home.row.Failed += c.row.Failed
		home.row.Dead += c.row.Dead
	}
	return out
}

func newSummary(cells []*cell, rule selection.Rule) Summary {
	s := Summary{Rule: rule, Oracle: rule.Oracle(), Rows: []Row{}}
	for _, c := range cells {
		s.Rows = append(s.Rows, c.row)
		s.Items += c.row.Items
		s.Failed += c.row.Failed
		s.Dead += c.row.Dead
	}
	s.Done = s.Items - s.Failed - s.Dead
	s.Planned = s.Items
	s.Varying = vary(s.Rows)
	for i, c := range cells {
		c.row = s.Rows[i]
	}
	s.Comparisons = compare(cells, s.Varying)
	return s
}

// Missing is the number of planned items without an outcome.
func (s Summary) Missing() int { return s.Planned - s.Items }

// ResolvedRow returns a row with known parameters and settings, or nil.
func (s Summary) ResolvedRow() *Row {
	for i := range s.Rows {
		if s.Rows[i].Cell().Resolved() {
			return &s.Rows[i]
		}
	}
	return nil
}
