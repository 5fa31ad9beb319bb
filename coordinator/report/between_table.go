package report

import (
	"fmt"
	"slices"
	"strconv"
)

// runsTable is the table of the page that compares runs.
type runsTable struct {
	Table
	Bins []binsTable
}

// binsTable has the bins of one row.
type binsTable struct {
	Title string
	Lines [][]string
}

// newRunsTable returns nil if no row has several runs. Its columns with text are those of the summary's table.
func newRunsTable(s Summary, summary Table) *runsTable {
	t := &runsTable{Table: Table{Labels: summary.Labels}}
	t.Head = append(slices.Clone(summary.Head[:t.Labels]), "measurements", "runs", "PSNR of the mean", "mean PSNR", "coverage ±1", "coverage ±2",
		"error / deviation", "correlation")
	t.Notes = []string{
		"Mean and deviation of the runs of one measurement, from their 8-bit pictures. If the runs were draws from the distribution of the " +
			"truth, ±1 and ±2 deviations (Student's, for the number of runs) would cover 68.3 % and 95.4 % of the samples, and error / deviation be 1.",
	}
	variants := s.variants()
	for i := range s.Rows {
		r := &s.Rows[i]
		b := r.BetweenRuns
		if b == nil {
			continue
		}
		line := []string{
			strconv.Itoa(b.Measurements), strconv.Itoa(b.Runs), mean(b.PSNROfMean, 2, "–"), mean(b.MeanPSNR, 2, "–"),
		}
		if c := b.Calibration; c == nil {
			line = append(line, "–", "–", "–", "–")
		} else {
			line = append(line, percent(c.Coverage1), percent(c.Coverage2), optionalText(c.Ratio), optionalText(c.Correlation))
			bins := binsTable{Title: r.Label + " " + variants[r.group()] + " " + r.Method}
			for _, bin := range c.Bins {
				to := "∞"
				if bin.To > 0 {
					to = decimal(255*bin.To, 1)
				}
				bins.Lines = append(bins.Lines, []string{
					decimal(255*bin.From, 1) + " to " + to, strconv.Itoa(bin.Samples), decimal(255*bin.DeviationRMS, 2), decimal(255*bin.ErrorRMS, 2),
				})
			}
			t.Bins = append(t.Bins, bins)
		}
		if b.Measurements < b.Of {
			t.Notes = append(t.Notes, fmt.Sprintf("%s: %d of %d measurements with several runs are compared, evenly selected.", r.Label, b.Measurements, b.Of))
		}
		t.Lines = append(t.Lines, append(slices.Clone(summary.Lines[i][:t.Labels]), Cells(line)...))
	}
	if len(t.Lines) == 0 {
		return nil
	}
	return t
}

func percent(share float64) string { return decimal(100*share, 1) + " %" }

func optionalText(v *float64) string {
	if v == nil {
		return "–"
	}
	return decimal(*v, 2)
}
