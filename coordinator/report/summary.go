package report

import (
	"fmt"
	"iter"

	"ddiff/manifest"
)

// Summary is what a campaign showed: one row per task and method.
type Summary struct {
	// Rule combined the runs of each measurement into one figure.
	Rule Rule `json:"rule"`
	// Oracle says that the rule looked at the ground truth.
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

// Row is one task restored by one method.
type Row struct {
	Task   string `json:"task"`
	Method string `json:"method"`
	// Images is the number of measurements with at least one finished run.
	Images int `json:"images"`
	// Items counts the manifest's rows of this task and method, whatever became of them;
	// Failed and Dead are those of them that did not finish.
	Items  int `json:"items"`
	Failed int `json:"failed,omitempty"`
	Dead   int `json:"dead,omitempty"`

	// PSNR in dB; Baseline is that of the degraded image, Gain the difference.
	PSNR     Estimate `json:"psnr,omitzero"`
	Baseline Estimate `json:"baseline_psnr,omitzero"`
	Gain     Estimate `json:"gain,omitzero"`
	SSIM     Estimate `json:"ssim,omitzero"`
	// Residual is mean((y - A(x))^2) - sigma^2: zero is best.
	Residual Estimate `json:"residual,omitzero"`
	// Seconds is the solver time per image. Rules that choose among runs pay for each.
	Seconds Estimate `json:"seconds,omitzero"`
}

// target names what is restored: two methods are compared only on equal targets.
type target struct {
	name        string
	measurement [32]byte
}

// setting tells apart restorations of one target by one method.
type setting struct {
	target
	solver, prior string
}

// cell gathers the results of one row of the summary.
type cell struct {
	row      Row
	settings []setting // in order of appearance
	runs     map[setting][]scores
}

// Summarize computes the means over images, per task and method, with the runs of each
// measurement combined by the rule (empty: first). The order of results does not matter.
//
// It returns [ErrUnknownRule] for another rule, and an error when an item or an outcome
// cannot be read.
func Summarize(results iter.Seq2[manifest.Result, error], rule Rule) (Summary, error) {
	all, err := collect(results)
	if err != nil {
		return Summary{}, err
	}
	return summarize(all, rule)
}

func summarize(results []manifest.Result, rule Rule) (Summary, error) {
	rule, err := ParseRule(string(rule))
	if err != nil {
		return Summary{}, err
	}
	cells, err := gather(sorted(results))
	if err != nil {
		return Summary{}, err
	}
	s := Summary{Rule: rule, Oracle: rule.Oracle(), Items: len(results), Rows: []Row{}}
	for _, c := range cells {
		c.summarize(rule)
		s.Rows = append(s.Rows, c.row)
		s.Failed += c.row.Failed
		s.Dead += c.row.Dead
	}
	s.Done = s.Items - s.Failed - s.Dead
	s.Comparisons = compareMethods(cells, rule)
	return s, nil
}

// gather sorts the results into cells; they come ordered by task, method, image and run.
func gather(results []manifest.Result) ([]*cell, error) {
	var cells []*cell
	for i := range results {
		r := &results[i]
		it := &r.Item
		last := len(cells) - 1
		if last < 0 || cells[last].row.Task != it.Task || cells[last].row.Method != it.Method {
			cells = append(cells, &cell{
				row:  Row{Task: it.Task, Method: it.Method},
				runs: make(map[setting][]scores),
			})
			last++
		}
		if err := cells[last].add(r); err != nil {
			return nil, err
		}
	}
	return cells, nil
}

func (c *cell) add(r *manifest.Result) error {
	measurement, err := r.Item.MeasurementKey()
	if err != nil {
		return fmt.Errorf("identify measurement of item %q: %w", r.Item.Name, err)
	}
	key := setting{
		target: target{r.Item.Name, measurement},
		solver: string(r.Item.Solver), prior: r.Item.Prior,
	}
	if _, known := c.runs[key]; !known {
		c.settings = append(c.settings, key)
		c.runs[key] = nil
	}
	c.row.Items++
	switch r.Outcome {
	case manifest.OutcomeDone:
		c.runs[key] = append(c.runs[key], scoresOf(r))
	case manifest.OutcomeFailed:
		c.row.Failed++
	case manifest.OutcomeDead:
		c.row.Dead++
	default:
		return fmt.Errorf("summarize item %q: outcome %q is none of done, failed, dead",
			r.Item.Name, r.Outcome)
	}
	return nil
}

func (c *cell) summarize(rule Rule) {
	var psnr, baseline, gain, ssim, residual, seconds []float64
	for _, key := range c.settings {
		if len(c.runs[key]) == 0 {
			continue
		}
		s := rule.combine(c.runs[key])
		c.row.Images++
		psnr = append(psnr, s.psnr)
		baseline = append(baseline, s.baseline)
		gain = append(gain, s.psnr-s.baseline)
		ssim = append(ssim, s.ssim)
		residual = append(residual, s.residual)
		seconds = append(seconds, s.seconds)
	}
	c.row.PSNR = estimate(psnr)
	c.row.Baseline = estimate(baseline)
	c.row.Gain = estimate(gain)
	c.row.SSIM = estimate(ssim)
	c.row.Residual = estimate(residual)
	c.row.Seconds = estimate(seconds)
}
