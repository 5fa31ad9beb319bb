package report

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/parquet-go/parquet-go"

	"ddiff/manifest"
	"ddiff/restore/operator"
)

// Summarize computes the summary of results, in any order, without writing files. An empty rule means first.
func Summarize(results iter.Seq2[manifest.Result, error], tasks operator.Set, rule Rule) (s Summary, err error) {
	if rule, err = ParseRule(string(rule)); err != nil {
		return s, err
	}
	ordered, err := collect(results, tasks, maxSorted)
	if err != nil {
		return s, err
	}
	s, err = summarize(ordered.all(), tasks, rule)
	return s, errors.Join(err, ordered.close())
}

// WriteCSV writes the table results.csv of results in any order.
func WriteCSV(ctx context.Context, w io.Writer, results iter.Seq2[manifest.Result, error], tasks operator.Set) error {
	return writeRows(ctx, results, tasks, func(ordered iter.Seq2[*entry, error]) error { return writeCSV(w, ordered) })
}

// parquetRow is a row of [WriteParquet]: the columns of results.csv, undefined figures null.
type parquetRow struct {
	Item          string   `parquet:"item"`
	Image         string   `parquet:"image,dict"`
	Task          string   `parquet:"task,dict"`
	Params        string   `parquet:"params,dict"`
	Sigma         float64  `parquet:"sigma"`
	Size          string   `parquet:"size,dict"`
	Prior         string   `parquet:"prior,dict"`
	Preset        string   `parquet:"preset,dict"`
	Method        string   `parquet:"method,dict"`
	Settings      string   `parquet:"settings,dict"`
	Run           int64    `parquet:"run"`
	Seed          uint64   `parquet:"seed"`
	Outcome       string   `parquet:"outcome,dict"`
	Reason        string   `parquet:"reason,dict"`
	PSNR          *float64 `parquet:"psnr,optional"`
	SSIM          *float64 `parquet:"ssim,optional"`
	Residual      *float64 `parquet:"residual,optional"`
	ResidualRatio *float64 `parquet:"residual_ratio,optional"`
	BaselinePSNR  *float64 `parquet:"baseline_psnr,optional"`
	Seconds       *float64 `parquet:"seconds,optional"`
	Steps         *int64   `parquet:"steps,optional"`
	Fit           string   `parquet:"fit,dict"`
	PSNRLuma      *float64 `parquet:"psnr_y,optional"`
	HaarPSI       *float64 `parquet:"haarpsi,optional"`
}

// WriteParquet writes the table of results in any order as a Parquet file, with the columns of results.csv in full
// precision.
func WriteParquet(ctx context.Context, w io.Writer, results iter.Seq2[manifest.Result, error], tasks operator.Set) error {
	return writeRows(ctx, results, tasks, func(ordered iter.Seq2[*entry, error]) error {
		out := parquet.NewGenericWriter[parquetRow](w, parquet.Compression(&parquet.Zstd))
		for e, err := range ordered {
			if err != nil {
				return err
			}
			if _, err := out.Write([]parquetRow{newParquetRow(e)}); err != nil {
				return fmt.Errorf("write Parquet row of item %s: %w", e.ID, err)
			}
		}
		return out.Close()
	})
}

func newParquetRow(e *entry) parquetRow {
	row := parquetRow{
		Item: e.ID, Image: e.Name, Task: e.Task, Params: e.Params, Sigma: e.Sigma, Prior: e.Prior, Preset: e.Preset,
		Method: e.Method, Settings: e.Settings, Run: int64(e.Run), Seed: e.Seed, Outcome: string(e.Outcome),
		Reason: e.Reason, Fit: e.Fit,
	}
	if e.Width > 0 {
		row.Size = pixels(e.Width, e.Height)
	}
	if e.done() {
		s, steps := &e.Scores, int64(e.Steps)
		row.PSNR, row.SSIM, row.Residual = optional(s.PSNR), optional(s.SSIM), optional(s.Residual)
		row.ResidualRatio, row.BaselinePSNR = optional(e.residualRatio()), optional(s.Baseline)
		row.Seconds, row.Steps = optional(s.Seconds), &steps
		row.PSNRLuma, row.HaarPSI = optional(s.PSNRLuma), optional(s.HaarPSI)
	}
	return row
}

// optional returns nil for an undefined figure.
func optional(v float64) *float64 {
	if !defined(v) {
		return nil
	}
	return &v
}

func writeRows(
	ctx context.Context, results iter.Seq2[manifest.Result, error], tasks operator.Set, write func(iter.Seq2[*entry, error]) error,
) error {
	ordered, err := collect(results, tasks, maxSorted)
	if err != nil {
		return err
	}
	return errors.Join(write(ordered.all()), ordered.close(), ctx.Err())
}
