package table

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"reflect"
	"regexp"

	"github.com/parquet-go/parquet-go"

	"ddiff/coordinator/report/entry"
	"ddiff/coordinator/report/result"
	"ddiff/coordinator/report/selection"
	"ddiff/coordinator/report/statistic"
	"ddiff/coordinator/report/sweep"
	"ddiff/restore/item"
	"ddiff/restore/metric"
	"ddiff/restore/operator"
)

// itemColumn is a column of the tables of all items.
type itemColumn struct {
	name string
	// value returns a string, an int64, a uint64, a float64, or a pointer to a number, nil for an undefined one.
	value func(e *entry.Entry) any
	// rounded: the number has six significant digits in CSV; others are exact.
	rounded bool
}

// itemColumns are the columns of results.csv, with the versions of the scores in the column metrics. Rows of failed and dead items have
// no figures. Differences between runtimes are larger than the rounding in CSV, and the digits suffice to recompute every mean in the summary.
func itemColumns(c *entry.Columns) []itemColumn {
	text := func(name string, of func(e *entry.Entry) string) itemColumn {
		return itemColumn{name: name, value: func(e *entry.Entry) any { return of(e) }}
	}
	ofDone := func(name string, of func(e *entry.Entry) string) itemColumn {
		return text(name, func(e *entry.Entry) string {
			if !e.Done() {
				return ""
			}
			return of(e)
		})
	}
	figure := func(name string, of func(e *entry.Entry) float64) itemColumn {
		return itemColumn{name, func(e *entry.Entry) any {
			if !e.Done() {
				return (*float64)(nil)
			}
			return statistic.Optional(of(e))
		}, true}
	}
	count := func(name string, of func(e *entry.Entry) float64) itemColumn {
		return itemColumn{name: name, value: func(e *entry.Entry) any {
			if v := of(e); e.Done() && statistic.Defined(v) {
				return new(int64(v))
			}
			return (*int64)(nil)
		}}
	}
	out := []itemColumn{
		text("item", func(e *entry.Entry) string { return e.ID }),
		text("image", func(e *entry.Entry) string { return e.Name }),
		text("task", func(e *entry.Entry) string { return e.Task }),
		text("params", func(e *entry.Entry) string { return e.Params }),
		{name: "sigma", value: func(e *entry.Entry) any { return e.Noise }},
		text("size", func(e *entry.Entry) string {
			if e.Width == 0 {
				return ""
			}
			return sweep.Pixels(e.Width, e.Height)
		}),
		text("prior", func(e *entry.Entry) string { return e.Prior }),
		text("preset", func(e *entry.Entry) string { return e.Preset }),
		text("method", func(e *entry.Entry) string { return e.Method }),
		text("settings", func(e *entry.Entry) string { return e.Settings }),
		{name: "run", value: func(e *entry.Entry) any { return int64(e.Run) }},
		{name: "seed", value: func(e *entry.Entry) any { return e.Seed }},
		text("outcome", func(e *entry.Entry) string { return string(e.Outcome) }),
		text("reason", func(e *entry.Entry) string { return e.Reason }),
	}
	scores := func(names []string) {
		for _, name := range names {
			out = append(out, figure(name, func(e *entry.Entry) float64 { return e.Scores.Of(name) }))
		}
	}
	scores(metric.Builtin().Names())
	out = append(out,
		figure("residual_ratio", (*entry.Entry).ResidualRatio),
		figure("baseline_psnr", func(e *entry.Entry) float64 { return e.Scores.Baseline() }),
		figure("seconds", func(e *entry.Entry) float64 { return e.Scores.Seconds }),
		count("steps", func(e *entry.Entry) float64 { return float64(e.Steps) }),
		text("fit", func(e *entry.Entry) string { return e.Fit }),
		ofDone("metrics", func(*entry.Entry) string { return c.Text() }))
	for k, name := range selection.CostNames {
		out = append(out, count(name, func(e *entry.Entry) float64 { return e.Scores.Cost[k] }))
	}
	out = append(out,
		text("precision", func(e *entry.Entry) string { return cmp.Or(e.Used, string(e.Precision)) }),
		ofDone("warnings", func(e *entry.Entry) string { return e.Warnings }),
		text("sigma_estimated", (*entry.Entry).EstimatedText),
		itemColumn{name: "photons", value: func(e *entry.Entry) any {
			if e.Photons == 0 {
				return (*float64)(nil)
			}
			return &e.Photons
		}})
	scores(c.Further)
	return out
}

// WriteCSV writes the table results.csv of results in any order. Undefined figures are empty cells.
func WriteCSV(w io.Writer, results iter.Seq2[item.Result, error], tasks operator.Set) error {
	s, err := entry.Collect(results, tasks, "", false)
	if err != nil {
		return err
	}
	return writeCSV(w, s)
}

// StoreCSV stores results.csv.
func StoreCSV(ctx context.Context, store result.Files, s *entry.Set) error {
	var out bytes.Buffer
	if err := writeCSV(&out, s); err != nil {
		return err
	}
	return result.Put(ctx, store, KeyCSV, out.Bytes())
}

func writeCSV(w io.Writer, s *entry.Set) error {
	columns := itemColumns(s.Columns)
	out := NewCSV(w)
	cells := make([]any, len(columns))
	for i := range columns {
		cells[i] = columns[i].name
	}
	out.Line(cells...)
	for _, e := range s.Entries {
		for i := range columns {
			cells[i] = columns[i].csv(e)
		}
		out.Line(cells...)
	}
	return out.Flush()
}

// csv is a cell of a [CSV].
func (c *itemColumn) csv(e *entry.Entry) any {
	switch v := c.value(e).(type) {
	case float64:
		return Number(sweep.Exact(v))
	case *int64:
		if v != nil {
			return *v
		}
	case *float64:
		switch {
		case v == nil:
		case c.rounded:
			return Number(CSVFigure(*v))
		default:
			return Number(sweep.Exact(*v))
		}
	default:
		return v
	}
	return ""
}

// WriteParquet writes the table of results in any order as a Parquet file, with the columns of results.csv in full
// precision. Undefined figures are null.
func WriteParquet(w io.Writer, results iter.Seq2[item.Result, error], tasks operator.Set) error {
	s, err := entry.Collect(results, tasks, "", false)
	if err != nil {
		return err
	}
	columns := itemColumns(s.Columns)
	for _, c := range columns {
		if !columnName.MatchString(c.name) {
			return fmt.Errorf("write Parquet: the metric %q cannot be the name of a column; leave its results out with --where", c.name)
		}
	}
	row := reflect.New(parquetType(columns)).Elem()
	out := parquet.NewWriter(w, parquet.SchemaOf(row.Interface()), parquet.Compression(&parquet.Zstd))
	for _, e := range s.Entries {
		for i := range columns {
			row.Field(i).Set(reflect.ValueOf(columns[i].value(e)))
		}
		if err := out.Write(row.Interface()); err != nil {
			return fmt.Errorf("write Parquet row of item %s: %w", e.ID, err)
		}
	}
	return out.Close()
}

var columnName = regexp.MustCompile(`^[a-z0-9_]+$`)

// parquetType has a field for each column. Texts other than the identities have a dictionary.
func parquetType(columns []itemColumn) reflect.Type {
	var fields []reflect.StructField
	for i, c := range columns {
		of, tag := reflect.TypeOf(c.value(&entry.Entry{})), c.name
		switch {
		case of.Kind() == reflect.Pointer:
			tag += ",optional"
		case of.Kind() == reflect.String && c.name != "item":
			tag += ",dict"
		}
		fields = append(fields, reflect.StructField{Name: fmt.Sprintf("Column%d", i), Type: of, Tag: reflect.StructTag(`parquet:"` + tag + `"`)})
	}
	return reflect.StructOf(fields)
}
