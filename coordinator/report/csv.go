package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
)

// csvHeader is the fixed header of results.csv. Scripts read it: do not change it.
const csvHeader = "item,image,task,method,run,seed,psnr,ssim,residual,baseline_psnr,seconds,steps"

// writeCSV writes one row per entry, in order. Undefined figures are empty cells; rows of failed and dead items have no
// figures.
//
// PSNR has 4 decimals, SSIM 6, seconds 3, the residual 6 significant digits. Differences between runtimes are larger,
// and the digits suffice to recompute every mean in the summary.
func writeCSV(w io.Writer, ordered iter.Seq2[*entry, error]) error {
	out := csv.NewWriter(w)
	if err := out.Write(strings.Split(csvHeader, ",")); err != nil {
		return fmt.Errorf("write csv header: %w", err)
	}
	for e, err := range ordered {
		if err != nil {
			return err
		}
		if err := out.Write(csvRow(e)); err != nil {
			return fmt.Errorf("write csv row of item %s: %w", e.ID, err)
		}
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write csv: %w", err)
	}
	return nil
}

func csvRow(e *entry) []string {
	row := []string{e.ID, e.Name, e.Task, e.Method, strconv.Itoa(e.Run), strconv.FormatUint(e.Seed, 10)}
	if !e.done() {
		return append(row, "", "", "", "", "", "")
	}
	s := &e.Scores
	return append(row,
		csvFloat(s.PSNR, 'f', 4), csvFloat(s.SSIM, 'f', 6), csvFloat(s.Residual, 'g', 6),
		csvFloat(s.Baseline, 'f', 4),
		strconv.FormatFloat(s.Seconds, 'f', 3, 64), strconv.Itoa(e.Steps),
	)
}

func csvFloat(v float64, format byte, precision int) string {
	if !defined(v) {
		return ""
	}
	return strconv.FormatFloat(v, format, precision, 64)
}
