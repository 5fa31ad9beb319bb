package report

import (
	"iter"

	"ddiff/restore/operator"
)

// Summary has the means of a campaign, one row per task and method.
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

	// Rows are ordered by task, as in the paper, and method.
	Rows []Row `json:"rows"`
	// Comparisons pair the methods of each task.
	Comparisons []Comparison `json:"comparisons,omitempty"`
}

// Row has the means of one task and method.
type Row struct {
	Task string `json:"task"`
	// Label is the task's name for people. It is not part of the JSON object.
	Label  string `json:"-"`
	Method string `json:"method"`
	// Images is the number of measurements with at least one finished run.
	Images int `json:"images"`
	// Items counts all items of this task and method; Failed and Dead count the items that did not finish.
	Items  int `json:"items"`
	Failed int `json:"failed,omitempty"`
	Dead   int `json:"dead,omitempty"`

	// PSNR is in dB; Baseline is the PSNR of the degraded image, Gain the difference.
	PSNR     Estimate `json:"psnr,omitzero"`
	Baseline Estimate `json:"baseline_psnr,omitzero"`
	Gain     Estimate `json:"gain,omitzero"`
	SSIM     Estimate `json:"ssim,omitzero"`
	// Residual is mean((y - A(x))^2) - sigma^2: zero is best.
	Residual Estimate `json:"residual,omitzero"`
	// Seconds is the solver time per image, of all runs if the rule chooses among runs.
	Seconds Estimate `json:"seconds,omitzero"`
}

// cell computes one row of the summary.
type cell struct {
	row Row
	// The moments are those of PSNR, baseline, gain, SSIM, residual and seconds.
	moments [6]moments
}

func (c *cell) contains(m *measurement) bool { return c.row.Task == m.Task && c.row.Method == m.Method }

// each calls f with each figure of a finished measurement.
func (c *cell) each(m *measurement, f func(*moments, float64)) {
	if len(m.runs) == 0 {
		return
	}
	s := m.combined
	for i, v := range [len(c.moments)]float64{s.PSNR, s.Baseline, s.PSNR - s.Baseline, s.SSIM, s.Residual, s.Seconds} {
		f(&c.moments[i], v)
	}
}

func (c *cell) add(m *measurement) {
	c.row.Items += m.items
	c.row.Failed += m.failed
	c.row.Dead += m.dead
	if len(m.runs) > 0 {
		c.row.Images++
	}
	c.each(m, (*moments).add)
}

func (c *cell) finish() Row {
	for i, e := range [len(c.moments)]*Estimate{
		&c.row.PSNR, &c.row.Baseline, &c.row.Gain, &c.row.SSIM, &c.row.Residual, &c.row.Seconds,
	} {
		*e = c.moments[i].estimate()
	}
	return c.row
}

// summarize computes the means over images, per task and method, with the runs of each measurement combined by the rule.
// It reads the sorted entries twice: once for the means, once for the deviations and the comparisons.
func summarize(ordered iter.Seq2[*entry, error], tasks operator.Set, rule Rule) (Summary, error) {
	var cells []*cell
	methods := make(map[string]int) // of each task
	for m, err := range measurements(ordered, rule) {
		if err != nil {
			return Summary{}, err
		}
		if len(cells) == 0 || !cells[len(cells)-1].contains(m) {
			cells = append(cells, &cell{row: Row{Task: m.Task, Label: tasks.Label(m.Task), Method: m.Method}})
			methods[m.Task]++
		}
		cells[len(cells)-1].add(m)
	}
	var compare comparer
	rest := cells
	for m, err := range measurements(ordered, rule) {
		if err != nil {
			return Summary{}, err
		}
		if !rest[0].contains(m) {
			rest = rest[1:]
		}
		rest[0].each(m, (*moments).deviate)
		if methods[m.Task] > 1 {
			compare.add(m)
		}
	}
	s := Summary{Rule: rule, Oracle: rule.Oracle(), Rows: []Row{}, Comparisons: compare.finish()}
	for _, c := range cells {
		row := c.finish()
		s.Rows = append(s.Rows, row)
		s.Items += row.Items
		s.Failed += row.Failed
		s.Dead += row.Dead
	}
	s.Done = s.Items - s.Failed - s.Dead
	return s, nil
}
