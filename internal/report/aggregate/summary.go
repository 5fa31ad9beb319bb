// Package aggregate computes the means of a report as plain values: a [Row] for each problem and approach, paired comparisons, and which
// settings were chosen on the rows' own images. It writes nothing.
package aggregate

import (
	"cmp"
	"iter"

	"ddiff/internal/report/entry"
	"ddiff/internal/report/selection"
	"ddiff/internal/report/statistic"
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

// newRow computes the row of a group.
func newRow(g *entry.Group, label string, figures []string, tunings *Tunings) Row {
	r := Row{Cell: g.Cell, Label: label, Means: make(map[string]statistic.Estimate), group: g}
	var choice *TunedImages
	for _, m := range g.Measurements {
		r.Items += m.Items
		r.Failed += m.Failed
		r.Dead += m.Dead
		r.countFinished(m.Done, !m.Copy)
		r.Preset = cmp.Or(r.Preset, m.Preset)
		if len(m.Done) > 0 {
			if choice == nil {
				choice = tunings.Of(m.Entry)
			}
			choice.count(m.Image)
		}
	}
	r.TunedImages, r.PresetImages = choice.images()
	finished := g.Finished()
	r.Measurements = len(finished)
	var images []uint64
	for _, m := range finished {
		r.Runs += len(m.Done)
		r.Chosen = r.Chosen || len(m.Done) > 1
		images = append(images, m.Image)
	}
	for _, name := range figures {
		values := make([]float64, len(finished))
		for i, m := range finished {
			values[i] = m.Of(name)
		}
		if e := statistic.ClusterMean(values, images); e.N > 0 {
			r.Means[name] = e
		}
	}
	r.Images = r.Means[entry.Seconds].N // each finished run has a time
	return r
}

// SummarizeEntries computes the means per problem and approach.
func SummarizeEntries(set *entry.Set, tasks operator.Set, tunings *Tunings) Summary {
	s := Summary{Rule: set.Rule, Oracle: set.Rule.Oracle()}
	figures := append(set.Columns.Figures(), entry.Gain)
	var rows []Row
	for _, g := range set.Groups {
		rows = append(rows, newRow(g, tasks.Label(g.Task), figures, tunings))
	}
	s.Rows = attribute(rows)
	for i := range s.Rows {
		s.Items += s.Rows[i].Items
		s.Failed += s.Rows[i].Failed
		s.Dead += s.Rows[i].Dead
	}
	s.Done = s.Items - s.Failed - s.Dead
	s.Planned = s.Items
	s.Varying = vary(s.Rows)
	s.Comparisons = compare(s.Rows, s.Varying)
	s.MetricIDs, s.ScoredLater, s.Unscored = set.Columns.Coverage()
	return s
}

// attribute adds the items that failed before their settings were known to the row that they would have belonged to,
// if there is exactly one. Others remain rows without figures.
func attribute(rows []Row) []Row {
	lost := make([]bool, len(rows))
	for i := range rows {
		r := &rows[i]
		var homes []*Row
		for k := range rows {
			if !r.Resolved() && r.MayBe(rows[k].Cell) {
				homes = append(homes, &rows[k])
			}
		}
		if lost[i] = len(homes) == 1; lost[i] {
			homes[0].Items += r.Items
			homes[0].Failed += r.Failed
			homes[0].Dead += r.Dead
		}
	}
	out := []Row{}
	for i, r := range rows {
		if !lost[i] {
			out = append(out, r)
		}
	}
	return out
}

// Missing is the number of planned items without an outcome.
func (s Summary) Missing() int { return s.Planned - s.Items }

// ResolvedRow returns a row with known parameters and settings, or nil.
func (s Summary) ResolvedRow() *Row {
	for i := range s.Rows {
		if s.Rows[i].Resolved() {
			return &s.Rows[i]
		}
	}
	return nil
}
