package table

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"

	"ddiff/coordinator/report/entry"
	"ddiff/coordinator/report/selection"
	"ddiff/coordinator/report/statistic"
	"ddiff/coordinator/report/sweep"
)

// costText returns a count of a result's cost, empty for an unknown one.
func costText(v float64) string {
	if !statistic.Defined(v) {
		return ""
	}
	return strconv.Itoa(int(v))
}

// CSVHeader is the fixed part of the header of results.csv; the further metrics follow. Scripts read it: only append columns.
const CSVHeader = "item,image,task,params,sigma,size,prior,preset,method,settings,run,seed,outcome,reason," +
	"psnr,ssim,residual,residual_ratio,baseline_psnr,seconds,steps,fit,psnr_y,haarpsi,metrics,network,network_backward,operator,autoencoder,autoencoder_backward,precision,warnings,sigma_estimated,photons"

// writeCSV writes one row per entry, in order, with the versions of the scores in the column metrics. Undefined figures are empty cells; rows of failed and dead items have no
// figures.
//
// PSNR has 4 decimals, SSIM and HaarPSI 6, seconds 3, the residual 6 significant digits, its ratio to the variance of the noise as well. Differences
// between runtimes are larger, and the digits suffice to recompute every mean in the summary.
func writeCSV(w io.Writer, c *entry.Columns, ordered iter.Seq2[*entry.Entry, error]) error {
	out := csv.NewWriter(w)
	if err := out.Write(append(strings.Split(CSVHeader, ","), c.Extra...)); err != nil {
		return fmt.Errorf("write csv header: %w", err)
	}
	for e, err := range ordered {
		if err != nil {
			return err
		}
		if err := out.Write(csvRow(e, c)); err != nil {
			return fmt.Errorf("write csv row of item %s: %w", e.ID, err)
		}
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write csv: %w", err)
	}
	return nil
}

func csvRow(e *entry.Entry, c *entry.Columns) []string {
	size := ""
	if e.Width > 0 {
		size = sweep.Pixels(e.Width, e.Height)
	}
	row := []string{
		e.ID, CSVText(e.Name), CSVText(e.Task), CSVText(e.Params), sweep.Exact(e.Noise), size, e.Prior, CSVText(e.Preset), CSVText(e.Method),
		CSVText(e.Settings), strconv.Itoa(e.Run), strconv.FormatUint(e.Seed, 10), string(e.Outcome), CSVText(e.Reason),
	}
	if !e.Done() {
		row = append(row, "", "", "", "", "", "", "", e.Fit, "", "", "")
		row = append(row, make([]string, selection.CostKinds)...)
		row = append(row, string(e.Precision), "", e.EstimatedText(), e.PhotonsText())
		return append(row, make([]string, len(c.Extra))...)
	}
	s := &e.Scores
	row = append(row,
		CSVFloat(s.PSNR, 'f', 4), CSVFloat(s.SSIM, 'f', 6), CSVFloat(s.Residual, 'g', 6), CSVFloat(e.ResidualRatio(), 'g', 6),
		CSVFloat(s.Baseline, 'f', 4),
		strconv.FormatFloat(s.Seconds, 'f', 3, 64), strconv.Itoa(e.Steps), e.Fit,
		CSVFloat(s.PSNRLuma, 'f', 4), CSVFloat(s.HaarPSI, 'f', 6), c.Text(),
	)
	for _, v := range s.Cost {
		row = append(row, costText(v))
	}
	row = append(row, cmp.Or(e.Used, string(e.Precision)), e.Warnings, e.EstimatedText(), e.PhotonsText())
	for _, v := range s.Extra {
		row = append(row, CSVFloat(v, 'g', 6))
	}
	return row
}

// CSVText puts an apostrophe before a text that a spreadsheet would compute, and replaces control characters.
func CSVText(s string) string {
	s = sweep.Printable(s)
	if s != "" && strings.ContainsRune("=+-@", rune(s[0])) {
		return "'" + s
	}
	return s
}

// CSVFloat formats a figure as [strconv.FormatFloat] does; an undefined one is empty.
func CSVFloat(v float64, format byte, precision int) string {
	if !statistic.Defined(v) {
		return ""
	}
	return strconv.FormatFloat(v, format, precision, 64)
}
