package table

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"reflect"
	"regexp"
	"slices"

	"github.com/parquet-go/parquet-go"

	"ddiff/internal/report/entry"
	"ddiff/internal/report/result"
	"ddiff/internal/report/sweep"
	"ddiff/restore/item"
	"ddiff/restore/operator"
)

// itemColumns are the columns of results.csv.
func itemColumns(c *entry.Columns) []Column {
	return slices.DeleteFunc(columns(c.Further, c.Text()), func(c Column) bool { return c.half || c.ID == imagesID })
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
		cells[i] = columns[i].ID
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
func (c *Column) csv(e *entry.Entry) any {
	switch v := c.ofItem(e).(type) {
	case float64:
		return Number(sweep.Exact(v))
	case *int64:
		if v != nil {
			return *v
		}
	case *float64:
		switch {
		case v == nil:
		case c.exact:
			return Number(sweep.Exact(*v))
		default:
			return Number(CSVFigure(*v))
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
		if !columnName.MatchString(c.ID) {
			return fmt.Errorf("write Parquet: the metric %q cannot be the name of a column; leave its results out with --where", c.ID)
		}
	}
	row := reflect.New(parquetType(columns)).Elem()
	out := parquet.NewWriter(w, parquet.SchemaOf(row.Interface()), parquet.Compression(&parquet.Zstd))
	for _, e := range s.Entries {
		for i := range columns {
			row.Field(i).Set(reflect.ValueOf(columns[i].ofItem(e)))
		}
		if err := out.Write(row.Interface()); err != nil {
			return fmt.Errorf("write Parquet row of item %s: %w", e.ID, err)
		}
	}
	return out.Close()
}

var columnName = regexp.MustCompile(`^[a-z0-9_]+$`)

// parquetType has a field for each column. Texts other than the identities have a dictionary.
func parquetType(columns []Column) reflect.Type {
	var fields []reflect.StructField
	for i, c := range columns {
		of, tag := reflect.TypeOf(c.ofItem(&entry.Entry{Cell: &sweep.Cell{}, How: &entry.How{}})), c.ID
		switch {
		case of.Kind() == reflect.Pointer:
			tag += ",optional"
		case of.Kind() == reflect.String && c.ID != "item":
			tag += ",dict"
		}
		fields = append(fields, reflect.StructField{Name: fmt.Sprintf("Column%d", i), Type: of, Tag: reflect.StructTag(`parquet:"` + tag + `"`)})
	}
	return reflect.StructOf(fields)
}
