package page

import (
	"fmt"
	"slices"
	"strconv"

	"ddiff/internal/report/aggregate"
	"ddiff/internal/report/table"
)

// newRunsTable returns the table that compares runs, nil if no row has several. Its columns with text are those of the summary's table.
func newRunsTable(s aggregate.Summary, summary table.Table) *table.Table {
	labels := slices.IndexFunc(summary.Columns, func(c table.Column) bool { return !c.Label })
	t := &table.Table{Columns: append(slices.Clone(summary.Columns[:labels]),
		table.Names(nil, "measurements", "runs", "PSNR of the mean", "mean PSNR", "error / deviation", "correlation")...)}
	t.Notes = []table.Note{{Text: "Mean and deviation of the runs of one measurement, from their 8-bit pictures. If the runs were draws from the distribution of the " +
		"truth, error / deviation would be 1."}}
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
			line = append(line, "–", "–")
		} else {
			line = append(line, optionalText(c.Ratio), optionalText(c.Correlation))
		}
		if b.Measurements < b.Of {
			t.Notes = append(t.Notes, table.Note{Text: fmt.Sprintf("%s: %d of %d measurements with several runs are compared, evenly selected.", r.Label, b.Measurements, b.Of)})
		}
		cells := append(slices.Clone(summary.Lines[i][:labels]), table.Cells(line)...)
		cells[0].Text = r.Label
		t.Lines = append(t.Lines, cells)
	}
	if len(t.Lines) == 0 {
		return nil
	}
	return t
}

func optionalText(v *float64) string {
	if v == nil {
		return "–"
	}
	return table.Decimal(*v, 2)
}
