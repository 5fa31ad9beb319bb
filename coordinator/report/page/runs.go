package page

import (
	"fmt"
	"slices"
	"strconv"

	"ddiff/coordinator/report/aggregate"
	"ddiff/coordinator/report/table"
)

// runsTable is the table of the page that compares runs.
type runsTable struct {
	table.Table
	Bins []binsTable
}

// binsTable has the bins of one row.
type binsTable struct {
	Title string
	Lines [][]string
}

// newRunsTable returns nil if no row has several runs. Its columns with text are those of the summary's table.
func newRunsTable(s aggregate.Summary, summary table.Table) *runsTable {
	t := &runsTable{Table: table.Table{Labels: summary.Labels}}
	t.Head = append(slices.Clone(summary.Head[:t.Labels]), "measurements", "runs", "PSNR of the mean", "mean PSNR", "coverage ±1", "coverage ±2",
		"error / deviation", "correlation")
	t.Notes = []string{
		"Mean and deviation of the runs of one measurement, from their 8-bit pictures. If the runs were draws from the distribution of the " +
			"truth, ±1 and ±2 deviations (Student's, for the number of runs) would cover 68.3 % and 95.4 % of the samples, and error / deviation be 1.",
	}
	variants := s.Variants()
	for i := range s.Rows {
		r := &s.Rows[i]
		b := r.BetweenRuns
		if b == nil {
			continue
		}
		line := []string{
			strconv.Itoa(b.Measurements), strconv.Itoa(b.Runs), table.Mean(b.PSNROfMean, 2, "–"), table.Mean(b.MeanPSNR, 2, "–"),
		}
		if c := b.Calibration; c == nil {
			line = append(line, "–", "–", "–", "–")
		} else {
			line = append(line, percent(c.Coverage1), percent(c.Coverage2), optionalText(c.Ratio), optionalText(c.Correlation))
			bins := binsTable{Title: r.Label + " " + variants[r.Cell()] + " " + r.Method}
			for _, bin := range c.Bins {
				to := "∞"
				if bin.To > 0 {
					to = table.Decimal(255*bin.To, 1)
				}
				bins.Lines = append(bins.Lines, []string{
					table.Decimal(255*bin.From, 1) + " to " + to, strconv.Itoa(bin.Samples), table.Decimal(255*bin.DeviationRMS, 2), table.Decimal(255*bin.ErrorRMS, 2),
				})
			}
			t.Bins = append(t.Bins, bins)
		}
		if b.Measurements < b.Of {
			t.Notes = append(t.Notes, fmt.Sprintf("%s: %d of %d measurements with several runs are compared, evenly selected.", r.Label, b.Measurements, b.Of))
		}
		t.Lines = append(t.Lines, append(slices.Clone(summary.Lines[i][:t.Labels]), table.Cells(line)...))
	}
	if len(t.Lines) == 0 {
		return nil
	}
	return t
}

func percent(share float64) string { return table.Decimal(100*share, 1) + " %" }

func optionalText(v *float64) string {
	if v == nil {
		return "–"
	}
	return table.Decimal(*v, 2)
}
