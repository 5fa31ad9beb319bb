package table

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"reflect"

	"github.com/parquet-go/parquet-go"

	"ddiff/coordinator/report/entry"
	"ddiff/coordinator/report/statistic"
	"ddiff/coordinator/report/sweep"
	"ddiff/manifest"
	"ddiff/restore/operator"
)

// WriteCSV writes the table results.csv of results in any order.
func WriteCSV(ctx context.Context, w io.Writer, results iter.Seq2[manifest.Result, error], tasks operator.Set) error {
	return writeRows(ctx, results, tasks, func(s *entry.Sorter) error { return writeCSV(w, s.Columns, s.All()) })
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
	Metrics       string   `parquet:"metrics,dict"`

	Network             *int64 `parquet:"network,optional"`
	NetworkBackward     *int64 `parquet:"network_backward,optional"`
	Operator            *int64 `parquet:"operator,optional"`
	Autoencoder         *int64 `parquet:"autoencoder,optional"`
	AutoencoderBackward *int64 `parquet:"autoencoder_backward,optional"`
	Precision           string `parquet:"precision,dict"`
	Warnings            string `parquet:"warnings,dict"`
	SigmaEstimated      string `parquet:"sigma_estimated,dict"`

	Photons *float64 `parquet:"photons,optional"`
}

// WriteParquet writes the table of results in any order as a Parquet file, with the columns of results.csv in full
// precision.
func WriteParquet(ctx context.Context, w io.Writer, results iter.Seq2[manifest.Result, error], tasks operator.Set) error {
	return writeRows(ctx, results, tasks, func(s *entry.Sorter) error {
		row := reflect.New(parquetType(s.Columns.Extra)).Elem()
		out := parquet.NewWriter(w, parquet.SchemaOf(row.Interface()), parquet.Compression(&parquet.Zstd))
		for e, err := range s.All() {
			if err != nil {
				return err
			}
			fixed := reflect.ValueOf(newParquetRow(e, s.Columns))
			for i := range fixed.NumField() {
				row.Field(i).Set(fixed.Field(i))
			}
			for i := range s.Columns.Extra {
				var v *float64
				if e.Done() {
					v = statistic.Optional(e.Scores.Extra[i])
				}
				row.Field(fixed.NumField() + i).Set(reflect.ValueOf(v))
			}
			if err := out.Write(row.Interface()); err != nil {
				return fmt.Errorf("write Parquet row of item %s: %w", e.ID, err)
			}
		}
		return out.Close()
	})
}

// parquetType has the fields of a parquetRow, and one for each further metric.
func parquetType(extra []string) reflect.Type {
	fields := reflect.VisibleFields(reflect.TypeFor[parquetRow]())
	for i, name := range extra {
		tag := reflect.StructTag(`parquet:"` + name + `,optional"`)
		fields = append(fields, reflect.StructField{Name: fmt.Sprintf("Extra%d", i), Type: reflect.TypeFor[*float64](), Tag: tag})
	}
	return reflect.StructOf(fields)
}

func newParquetRow(e *entry.Entry, c *entry.Columns) parquetRow {
	row := parquetRow{
		Item: e.ID, Image: e.Name, Task: e.Task, Params: e.Params, Sigma: e.Noise, Prior: e.Prior, Preset: e.Preset,
		Method: e.Method, Settings: e.Settings, Run: int64(e.Run), Seed: e.Seed, Outcome: string(e.Outcome),
		Reason: e.Reason, Fit: e.Fit, Precision: cmp.Or(e.Used, string(e.Precision)), Warnings: e.Warnings, SigmaEstimated: e.EstimatedText(),
	}
	if e.Photons > 0 {
		row.Photons = &e.Photons
	}
	if e.Width > 0 {
		row.Size = sweep.Pixels(e.Width, e.Height)
	}
	if e.Done() {
		s, steps := &e.Scores, int64(e.Steps)
		row.PSNR, row.SSIM, row.Residual = statistic.Optional(s.PSNR), statistic.Optional(s.SSIM), statistic.Optional(s.Residual)
		row.ResidualRatio, row.BaselinePSNR = statistic.Optional(e.ResidualRatio()), statistic.Optional(s.Baseline)
		row.Seconds, row.Steps = statistic.Optional(s.Seconds), &steps
		row.PSNRLuma, row.HaarPSI, row.Metrics = statistic.Optional(s.PSNRLuma), statistic.Optional(s.HaarPSI), c.Text()
		for k, count := range []**int64{&row.Network, &row.NetworkBackward, &row.Operator, &row.Autoencoder, &row.AutoencoderBackward} {
			if v := s.Cost[k]; statistic.Defined(v) {
				*count = new(int64(v))
			}
		}
	}
	return row
}

func writeRows(
	ctx context.Context, results iter.Seq2[manifest.Result, error], tasks operator.Set, write func(*entry.Sorter) error,
) error {
	ordered, err := entry.Collect(results, tasks, false)
	if err != nil {
		return err
	}
	return errors.Join(write(ordered), ordered.Close(), ctx.Err())
}
