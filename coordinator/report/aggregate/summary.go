// Package aggregate computes the means of a report as plain values: a [Row] for each problem and approach, paired comparisons, and which
// settings were chosen on the rows' own images. It writes nothing. A further figure of a row is a field of [Row] and one value of a
// measurement.
package aggregate

import (
	"errors"
	"iter"
	"slices"

	"ddiff/coordinator/report/entry"
	"ddiff/coordinator/report/selection"
	"ddiff/coordinator/report/statistic"
	"ddiff/manifest"
	"ddiff/restore/operator"
)

// Summarize computes the summary of results, in any order, without writing files. An empty rule means first. Tunings say
// which settings were chosen on which images; nil knows of none.
func Summarize(results iter.Seq2[manifest.Result, error], tasks operator.Set, rule selection.Rule, tunings *Tunings) (s Summary, err error) {
	if rule, err = selection.Parse(string(rule)); err != nil {
		return s, err
	}
	ordered, err := entry.Collect(results, tasks, false)
	if err != nil {
		return s, err
	}
	s, err = SummarizeEntries(ordered, tasks, rule, tunings)
	return s, errors.Join(err, ordered.Close())
}

// Summary has the means of a campaign, one row per problem and approach.
type Summary struct {
	// Rule combined the runs of each measurement into one figure.
	Rule selection.Rule `json:"rule"`
	// Oracle reports that the rule used the ground truth.
	Oracle bool `json:"oracle"`

	// Items is the size of the manifest: Done + Failed + Dead.
	Items  int `json:"items"`
	Done   int `json:"done"`
	Failed int `json:"failed"`
	Dead   int `json:"dead"`
	// Others is the number of results in the same output that belong to other campaigns, or a lower bound if MoreOthers is
	// set. They are not in Items.
	Others     int  `json:"others,omitempty"`
	MoreOthers bool `json:"more_others,omitempty"`

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

// cell computes one row of the summary.
type cell struct {
	row     Row
	moments statistic.Moments
	pairing *pairing
	choice  *TunedImages
}

// values are the figures of a finished measurement.
func values(m *entry.Measurement) []float64 {
	s := m.Combined
	own := []float64{s.PSNR, s.Baseline, s.PSNR - s.Baseline, s.SSIM, s.Residual, s.Seconds, s.PSNRLuma, s.HaarPSI}
	return slices.Concat(own, s.Cost[:], s.Extra)
}

func (c *cell) count(m *entry.Measurement) {
	c.row.Items += m.Items
	c.row.Failed += m.Failed
	c.row.Dead += m.Dead
	measured := len(m.Runs) > 0 && !m.Copy
	c.row.countFinished(m.Done, measured)
	if c.row.Preset == "" {
		c.row.Preset = m.Preset
	}
	if measured {
		c.row.Measurements++
		c.row.Runs += len(m.Runs)
		c.row.Chosen = c.row.Chosen || len(m.Runs) > 1
		c.moments.Count(m.Image, values(m))
	}
}

// finish computes the estimates; extra names the further metrics.
func (c *cell) finish(extra []string) {
	own := []*statistic.Estimate{
		&c.row.PSNR, &c.row.Baseline, &c.row.Gain, &c.row.SSIM, &c.row.Residual, &c.row.Seconds, &c.row.PSNRLuma, &c.row.HaarPSI,
	}
	for k, e := range own {
		*e = c.moments.Estimate(k)
	}
	c.row.Cost = c.estimates(len(own), selection.CostNames[:])
	c.row.Metrics = c.estimates(len(own)+selection.CostKinds, extra)
	c.row.TunedImages, c.row.PresetImages = c.choice.images()
	c.row.Images = c.row.Seconds.N // each finished run has a time
}

// estimates returns the estimates of figures from an index on, by their names, without undefined ones.
func (c *cell) estimates(from int, names []string) map[string]statistic.Estimate {
	out := make(map[string]statistic.Estimate)
	for k, name := range names {
		if e := c.moments.Estimate(from + k); e.N > 0 {
			out[name] = e
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// SummarizeEntries computes the means per problem and approach, with the runs of each measurement combined by the rule. It
// reads the sorted entries twice: once for the means, once for the deviations and the comparisons.
func SummarizeEntries(s *entry.Sorter, tasks operator.Set, rule selection.Rule, tunings *Tunings) (Summary, error) {
	var cells []*cell
	for m, err := range entry.Measurements(s.All(), rule) {
		if err != nil {
			return Summary{}, err
		}
		if len(cells) == 0 || cells[len(cells)-1].row.Cell() != m.Cell() {
			cells = append(cells, &cell{row: Row{Problem: m.Problem, Approach: m.Approach, Label: tasks.Label(m.Task)}})
		}
		last := cells[len(cells)-1]
		last.count(m)
		if len(m.Runs) > 0 {
			if last.choice == nil {
				last.choice = tunings.Of(m.Entry)
			}
			last.choice.count(m.Image)
		}
	}
	for _, c := range cells {
		c.moments.Group()
	}
	addPairings(cells)
	at := 0
	for m, err := range entry.Measurements(s.All(), rule) {
		if err != nil {
			return Summary{}, err
		}
		if cells[at].row.Cell() != m.Cell() {
			at++
		}
		c := cells[at]
		if len(m.Runs) > 0 && !m.Copy {
			c.moments.Deviate(m.Image, values(m))
		}
		if c.pairing != nil && !m.Copy {
			c.pairing.add(m)
		}
	}
	for _, c := range cells {
		c.finish(s.Columns.Extra)
	}
	out := newSummary(attribute(cells), rule)
	out.MetricIDs, out.ScoredLater, out.Unscored = s.Columns.Coverage()
	return out, nil
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
		if home.pairing != nil && c.pairing != nil {
			*home.pairing = append(*home.pairing, *c.pairing...)
		}
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
	s.Varying = vary(s.Rows)
	for i, c := range cells {
		c.row = s.Rows[i]
	}
	s.Comparisons = compare(cells, s.Varying)
	return s
}

// ResolvedRow returns a row with known parameters and settings, or nil.
func (s Summary) ResolvedRow() *Row {
	for i := range s.Rows {
		if s.Rows[i].Cell().Resolved() {
			return &s.Rows[i]
		}
	}
	return nil
}
