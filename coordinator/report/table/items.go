package table

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"iter"
	"reflect"
	"slices"
	"strconv"

	"github.com/parquet-go/parquet-go"

	"ddiff/coordinator/report/entry"
	"ddiff/coordinator/report/result"
	"ddiff/coordinator/report/sweep"
	"ddiff/restore/item"
	"ddiff/restore/operator"
)

// itemColumns are the columns of results.csv.
func itemColumns(c *entry.Columns) []Column {
	return slices.DeleteFunc(columns(c.Further, c.Text()), func(c Column) bool { return c.item == nil })
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
	out := csv.NewWriter(w)
	write := func(cell func(c *Column) string) {
		row := make([]string, len(columns))
		for i := range columns {
			row[i] = cell(&columns[i])
		}
		out.Write(row) //nolint:errcheck // Flush has the error
	}
	write(func(c *Column) string { return c.ID })
	for _, e := range s.Entries {
		write(func(c *Column) string { return c.csv(e) })
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write csv: %w", err)
	}
	return nil
}

// csv is the text of a cell.
func (c *Column) csv(e *entry.Entry) string {
	switch v := c.item(e).(type) {
	case string:
		return CSVText(v)
	case float64:
		return sweep.Exact(v)
	case *int64:
		if v != nil {
			return strconv.FormatInt(*v, 10)
		}
	case *float64:
		switch {
		case v == nil:
		case c.exact:
			return sweep.Exact(*v)
		default:
			return CSVFigure(*v)
		}
	default:
		return fmt.Sprint(v)
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
	row := reflect.New(parquetType(columns)).Elem()
	out := parquet.NewWriter(w, parquet.SchemaOf(row.Interface()), parquet.Compression(&parquet.Zstd))
	for _, e := range s.Entries {
		for i := range columns {
			row.Field(i).Set(reflect.ValueOf(columns[i].item(e)))
		}
		if err := out.Write(row.Interface()); err != nil {
			return fmt.Errorf("write Parquet row of item %s: %w", e.ID, err)
		}
	}
	return out.Close()
}

// parquetType has a field for each column. Texts other than the identities have a dictionary.
func parquetType(columns []Column) reflect.Type {
	var fields []reflect.StructField
	for i, c := range columns {
		of, tag := reflect.TypeOf(c.item(&entry.Entry{})), c.ID
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
