package report

import (
	"slices"

	"ddiff/restore/operator"
)

// Summary has the means of a campaign, one row per problem and approach.
type Summary struct {
	// Rule combined the runs of each measurement into one figure.
	Rule Rule `json:"rule"`
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

	// scoredLater are the metrics whose scores were computed after solving, sorted; unscored has a note for each that lacks
	// scores.
	scoredLater, unscored []string
}

// Row has the means of one problem and approach. Different problems and settings are never averaged.
type Row struct {
	Problem
	Approach
	// Preset is the name of the preset from which the settings came, if it is known.
	Preset string `json:"preset,omitempty"`
	// Label is the task's name for people. It is not part of the JSON object.
	Label string `json:"-"`
	// Images is the number of images with at least one finished run; Measurements is the number of their measurements, one
	// for all names of an image.
	Images       int `json:"images"`
	Measurements int `json:"measurements"`
	// Items counts all items of the row; Failed and Dead count the items that did not finish.
	Items  int `json:"items"`
	Failed int `json:"failed,omitempty"`
	Dead   int `json:"dead,omitempty"`
	// Warned counts the finished items with warnings, Warnings those with a warning of a code.
	Warned   int            `json:"warned,omitempty"`
	Warnings map[string]int `json:"warnings,omitempty"`
	// Precisions counts the finished items by the precision of the score network, as far as it is known.
	Precisions map[string]int `json:"precisions,omitempty"`
	// besideFixed: the row fixes no precision, and another one of the summary does.
	besideFixed bool
	// TunedImages is the number of images of the row with which ddiff tune chose its settings, PresetImages that of images
	// with which values of its preset were chosen: figures on them are too good.
	TunedImages  int `json:"tuned_images,omitempty"`
	PresetImages int `json:"preset_images,omitempty"`

	// PSNR is in dB; Baseline is the PSNR of the degraded image, Gain the difference.
	PSNR     Estimate `json:"psnr,omitzero"`
	Baseline Estimate `json:"baseline_psnr,omitzero"`
	Gain     Estimate `json:"gain,omitzero"`
	SSIM     Estimate `json:"ssim,omitzero"`
	// PSNRLuma is in dB, on the luma; HaarPSI is in [0, 1].
	PSNRLuma Estimate `json:"psnr_y,omitzero"`
	HaarPSI  Estimate `json:"haarpsi,omitzero"`
	// Metrics are the scores of further metrics, by name.
	Metrics map[string]Estimate `json:"metrics,omitempty"`
	// Residual is mean((y - A(x))^2) minus the variance of the noise: zero is best.
	Residual Estimate `json:"residual,omitzero"`
	// BetweenRuns compares the runs of one measurement, if there are several. Only [Write] computes it.
	BetweenRuns *BetweenRuns `json:"between_runs,omitempty"`
	// Seconds is the solver time per image, of all runs if the rule chooses among runs.
	Seconds Estimate `json:"seconds,omitzero"`
	// Cost has the counts of [manifest.Cost] per image, by their names in result.json; of all runs if the rule chooses among
	// runs. Results of earlier versions have none.
	Cost map[string]Estimate `json:"cost,omitempty"`

	// runs counts the finished runs of the measurements.
	runs int
	// chosen: the rule chose among several runs of a measurement.
	chosen bool
	// varyingParams and varyingSettings are the parts in which the rows differ.
	varyingParams, varyingSettings string
}

// marked reports whether an oracle chose the row's figures.
func (r *Row) marked(oracle bool) bool { return oracle && r.chosen }

func (r *Row) group() Cell { return Cell{r.Problem, r.Approach} }

// cell computes one row of the summary.
type cell struct {
	row     Row
	moments moments
	pairing *pairing
	choice  *choice
}

// values are the figures of a finished measurement.
func values(m *measurement) []float64 {
	s := m.combined
	own := []float64{s.PSNR, s.Baseline, s.PSNR - s.Baseline, s.SSIM, s.Residual, s.Seconds, s.PSNRLuma, s.HaarPSI}
	return slices.Concat(own, s.Cost[:], s.Extra)
}

func (c *cell) count(m *measurement) {
	c.row.Items += m.items
	c.row.Failed += m.failed
	c.row.Dead += m.dead
	c.row.countWarnings(m.done)
	if c.row.Preset == "" {
		c.row.Preset = m.Preset
	}
	if len(m.runs) > 0 && !m.copy {
		c.row.Measurements++
		c.row.runs += len(m.runs)
		c.row.chosen = c.row.chosen || len(m.runs) > 1
		c.row.countPrecisions(m.done)
		c.moments.count(m.Image, values(m))
	}
}

// finish computes the estimates; extra names the further metrics.
func (c *cell) finish(extra []string) {
	own := []*Estimate{
		&c.row.PSNR, &c.row.Baseline, &c.row.Gain, &c.row.SSIM, &c.row.Residual, &c.row.Seconds, &c.row.PSNRLuma, &c.row.HaarPSI,
	}
	for k, e := range own {
		*e = c.moments.estimate(k)
	}
	c.row.Cost = c.estimates(len(own), costNames[:])
	c.row.Metrics = c.estimates(len(own)+costKinds, extra)
	c.row.TunedImages, c.row.PresetImages = c.choice.images()
	c.row.Images = c.row.Seconds.N // each finished run has a time
}

// estimates returns the estimates of figures from an index on, by their names, without undefined ones.
func (c *cell) estimates(from int, names []string) map[string]Estimate {
	out := make(map[string]Estimate)
	for k, name := range names {
		if e := c.moments.estimate(from + k); e.N > 0 {
			out[name] = e
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// summarize computes the means per problem and approach, with the runs of each measurement combined by the rule. It
// reads the sorted entries twice: once for the means, once for the deviations and the comparisons.
func summarize(s *sorter, tasks operator.Set, rule Rule, tunings *Tunings) (Summary, error) {
	var cells []*cell
	for m, err := range measurements(s.all(), rule) {
		if err != nil {
			return Summary{}, err
		}
		if len(cells) == 0 || cells[len(cells)-1].row.group() != m.group() {
			cells = append(cells, &cell{row: Row{Problem: m.Problem, Approach: m.Approach, Label: tasks.Label(m.Task)}})
		}
		last := cells[len(cells)-1]
		last.count(m)
		if len(m.runs) > 0 {
			if last.choice == nil {
				last.choice = tunings.of(m.entry)
			}
			last.choice.count(m.Image)
		}
	}
	for _, c := range cells {
		c.moments.group()
	}
	compared := addPairings(cells)
	at := 0
	for m, err := range measurements(s.all(), rule) {
		if err != nil {
			return Summary{}, err
		}
		if cells[at].row.group() != m.group() {
			at++
		}
		c := cells[at]
		if len(m.runs) > 0 && !m.copy {
			c.moments.deviate(m.Image, values(m))
		}
		if compared[at] && !m.copy {
			c.pairing.add(m)
		}
	}
	for _, c := range cells {
		c.finish(s.columns.extra)
	}
	out := newSummary(attribute(cells), rule)
	out.MetricIDs, out.scoredLater, out.unscored = s.columns.coverage()
	return out, nil
}

// attribute adds the items that failed before their settings were known to the cell that they would have belonged to,
// if there is exactly one. Others remain rows without figures.
func attribute(cells []*cell) []*cell {
	var out []*cell
	for _, c := range cells {
		if c.row.group().resolved() {
			out = append(out, c)
			continue
		}
		var home *cell
		homes := 0
		for _, other := range cells {
			if c.row.group().mayBe(other.row.group()) {
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
			home.pairing.merge(c.pairing)
		}
	}
	return out
}

func newSummary(cells []*cell, rule Rule) Summary {
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
