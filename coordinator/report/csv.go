package report

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"iter"
	"math"
	"strconv"
	"strings"

	"ddiff/manifest"
)

// csvHeader is the fixed part of the header of results.csv; the further metrics follow. Scripts read it: only append columns.
const csvHeader = "item,image,task,params,sigma,size,prior,preset,method,settings,run,seed,outcome,reason," +
	"psnr,ssim,residual,residual_ratio,baseline_psnr,seconds,steps,fit,psnr_y,haarpsi,metrics,network,network_backward,operator,autoencoder,autoencoder_backward,precision,warnings,sigma_estimated,photons"

// writeCSV writes one row per entry, in order, with the versions of the scores in the column metrics. Undefined figures are empty cells; rows of failed and dead items have no
// figures.
//
// PSNR has 4 decimals, SSIM and HaarPSI 6, seconds 3, the residual 6 significant digits, its ratio to the variance of the noise as well. Differences
// between runtimes are larger, and the digits suffice to recompute every mean in the summary.
func writeCSV(w io.Writer, c *columns, ordered iter.Seq2[*entry, error]) error {
	out := csv.NewWriter(w)
	if err := out.Write(append(strings.Split(csvHeader, ","), c.extra...)); err != nil {
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

func csvRow(e *entry, c *columns) []string {
	size := ""
	if e.Width > 0 {
		size = pixels(e.Width, e.Height)
	}
	row := []string{
		e.ID, csvText(e.Name), csvText(e.Task), csvText(e.Params), exact(e.Noise), size, e.Prior, csvText(e.Preset), csvText(e.Method),
		csvText(e.Settings), strconv.Itoa(e.Run), strconv.FormatUint(e.Seed, 10), string(e.Outcome), csvText(e.Reason),
	}
	if !e.done() {
		row = append(row, "", "", "", "", "", "", "", e.Fit, "", "", "")
		row = append(row, make([]string, costKinds)...)
		row = append(row, string(e.Precision), "", e.estimatedText(), e.photonsText())
		return append(row, make([]string, len(c.extra))...)
	}
	s := &e.Scores
	row = append(row,
		csvFloat(s.PSNR, 'f', 4), csvFloat(s.SSIM, 'f', 6), csvFloat(s.Residual, 'g', 6), csvFloat(e.residualRatio(), 'g', 6),
		csvFloat(s.Baseline, 'f', 4),
		strconv.FormatFloat(s.Seconds, 'f', 3, 64), strconv.Itoa(e.Steps), e.Fit,
		csvFloat(s.PSNRLuma, 'f', 4), csvFloat(s.HaarPSI, 'f', 6), c.text(),
	)
	for _, v := range s.Cost {
		row = append(row, costText(v))
	}
	row = append(row, cmp.Or(e.Used, string(e.Precision)), e.Warnings, e.estimatedText(), e.photonsText())
	for _, v := range s.Extra {
		row = append(row, csvFloat(v, 'g', 6))
	}
	return row
}

// residualRatio is the mean square residual over the variance of the noise, whose expectation under the truth is 1. NaN without noise.
func (e *entry) residualRatio() float64 {
	variance := e.Noise * e.Noise
	if e.Photons > 0 {
		variance = e.NoiseVariance
	}
	if variance == 0 {
		return math.NaN()
	}
	return e.Scores.Residual/variance + 1
}

// estimatedText is "true" for an item whose noise level was estimated.
func (e *entry) estimatedText() string {
	if e.Sigma == manifest.SigmaAuto {
		return "true"
	}
	return ""
}

// photonsText is the number of photons, empty without their noise.
func (p Problem) photonsText() string {
	if p.Photons == 0 {
		return ""
	}
	return exact(p.Photons)
}

// noiseText names the noise as in "σ 0.05, 100 photons".
func (p Problem) noiseText(sigma string) string {
	if p.Photons == 0 {
		return sigma + p.Sigma.String()
	}
	return sigma + p.Sigma.String() + ", " + exact(p.Photons) + " photons"
}

// csvText puts an apostrophe before a text that a spreadsheet would compute, and replaces control characters.
func csvText(s string) string {
	s = printable(s)
	if s != "" && strings.ContainsRune("=+-@", rune(s[0])) {
		return "'" + s
	}
	return s
}

func csvFloat(v float64, format byte, precision int) string {
	if !defined(v) {
		return ""
	}
	return strconv.FormatFloat(v, format, precision, 64)
}
