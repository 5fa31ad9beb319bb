package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"

	"ddiff/manifest"
)

// csvHeader is the fixed header of results.csv. Scripts read it: do not change it.
const csvHeader = "item,image,task,method,run,seed,psnr,ssim,residual,baseline_psnr,seconds,steps"

// WriteCSV writes one row per result, ordered by task (as in the paper), method, image name
// (img2 before img10) and run. A figure that is not defined is an empty cell; the rows of
// failed and dead items have no figures at all.
//
// PSNR has 4 decimals, SSIM 6, seconds 3, the residual 6 significant digits: well below
// what a change of the runtime moves, and enough to recompute every mean in the summary.
func WriteCSV(w io.Writer, results []manifest.Result) error {
	out := csv.NewWriter(w)
	if err := out.Write(strings.Split(csvHeader, ",")); err != nil {
		return fmt.Errorf("write csv header: %w", err)
	}
	for _, r := range sorted(results) {
		if err := out.Write(csvRow(&r)); err != nil {
			return fmt.Errorf("write csv row of item %s: %w", r.Item.ID, err)
		}
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write csv: %w", err)
	}
	return nil
}

func csvRow(r *manifest.Result) []string {
	it, m := &r.Item, &r.Metrics
	row := []string{
		it.ID, it.Name, it.Task, it.Method,
		strconv.Itoa(it.Run), strconv.FormatUint(it.Seed, 10),
	}
	if r.Outcome != manifest.OutcomeDone {
		return append(row, "", "", "", "", "", "")
	}
	return append(row,
		csvFloat(m.PSNR, 'f', 4), csvFloat(m.SSIM, 'f', 6), csvFloat(m.Residual, 'g', 6),
		csvFloat(m.BaselinePSNR, 'f', 4),
		strconv.FormatFloat(r.Seconds, 'f', 3, 64), strconv.Itoa(r.Steps),
	)
}

// csvFloat is empty for a figure that is missing or not finite.
func csvFloat(v *float64, format byte, precision int) string {
	if !defined(v) {
		return ""
	}
	return strconv.FormatFloat(*v, format, precision, 64)
}
