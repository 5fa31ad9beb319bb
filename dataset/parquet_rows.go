package dataset

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"ddiff/manifest"
)

// parquetColumn maps columns of a Parquet file to a column of rows.
type parquetColumn struct {
	column string
	text   *leaf // values, as in other lists
	bytes  *leaf // files in the cells, whose names are in text if it is not nil
}

// parquet reads the mapped columns of a Parquet list, one row group at a time.
func (r *reading) parquet(a Address, emit emitter) error {
	obj, err := r.openPart(a)
	if err != nil {
		return err
	}
	defer obj.close() //nolint:errcheck // opened for reading
	t, err := openTable(r.ctx, obj, r.cfg.MaxBytes)
	if err != nil {
		return err
	}
	config := r.listConfig(a)
	columns, err := parquetColumns(t, config)
	if err != nil {
		return err
	}
	first := int64(0)
	for i, group := range t.file.RowGroups() {
		if group.NumRows() == 0 { // pyarrow writes one for a table without rows, and no page in it
			continue
		}
		if err := r.group(a, t, i, columns, first, config, emit); err != nil {
			return err
		}
		first += group.NumRows()
	}
	return nil
}

func parquetColumns(t *table, config manifest.ListConfig) ([]parquetColumn, error) {
	leaves := t.leaves()
	byName := map[string]leaf{}
	var header []string
	for _, l := range leaves {
		byName[l.name] = l
		header = append(header, l.name)
		// A group of bytes and path is also a column of files.
		if group, ok := strings.CutSuffix(l.name, "."+bytesLeaf); ok && l.bytes() {
			header = append(header, group)
		}
	}
	fills, err := config.ColumnsOf(header, false)
	if err != nil {
		return nil, err
	}
	var out []parquetColumn
	for i, name := range header {
		for _, column := range fills[i] {
			c := parquetColumn{column: column}
			file := slices.Contains(fileColumns, column)
			l, plain := byName[name]
			switch {
			case plain && file && l.bytes():
				c.bytes = &l
			case plain:
				c.text = &l
			case file:
				inner := byName[name+"."+bytesLeaf]
				c.bytes = &inner
				if names, ok := byName[name+"."+pathLeaf]; ok {
					c.text = &names
				}
			default:
				return nil, fmt.Errorf("%w: column %q contains files, and %s is not a column of files", manifest.ErrBadList, name, column)
			}
			out = append(out, c)
		}
	}
	return out, nil
}

// group emits the rows of row group g, which begins with row first of the file.
func (r *reading) group(
	a Address, t *table, g int, columns []parquetColumn, first int64, config manifest.ListConfig, emit emitter,
) error {
	failed := func(err error) error { return fmt.Errorf("row group %d: %w", g, err) }
	open := make([]*values, len(columns))
	defer func() {
		for _, v := range open {
			if v != nil {
				v.close()
			}
		}
	}()
	for i, c := range columns {
		if c.text == nil {
			continue
		}
		v, err := t.values(g, *c.text, 0)
		if err != nil {
			return failed(err)
		}
		open[i] = v
	}
	inline := make([]bool, len(columns))
	for i, c := range columns {
		inline[i] = c.bytes != nil && !t.allNull(g, *c.bytes)
	}
	for n := range t.file.RowGroups()[g].NumRows() {
		number := int(first + n + 1)
		var fields []manifest.Field
		var bad error
		for i, c := range columns {
			text := ""
			if open[i] != nil {
				v, err := open[i].next()
				if err != nil {
					return failed(err)
				}
				if text, err = c.text.format(v); err != nil && bad == nil {
					bad = &manifest.FieldError{File: config.File, Line: number, Err: fmt.Errorf("column %s %w", c.text.name, err)}
				}
			}
			if inline[i] {
				text = r.cellAddress(a, *c.bytes, first+n, text).String()
			}
			fields = append(fields, manifest.Field{Column: c.column, Text: strings.TrimSpace(text)})
		}
		row := config.Row(number, "row", fields)
		if bad != nil {
			row.Err = bad
		}
		if err := emit(row); err != nil {
			return err
		}
	}
	return nil
}

// allNull reports whether the file states that a leaf has no value in row group g.
func (t *table) allNull(g int, l leaf) bool {
	_, meta, err := t.chunk(g, l)
	n := t.file.RowGroups()[g].NumRows()
	return err == nil && n > 0 && meta.Statistics.NullCount == n
}

// cellAddress returns the address of a cell. text is the name of its file, empty if unknown.
func (r *reading) cellAddress(a Address, l leaf, row int64, text string) Address {
	a.part, a.column, a.row = partCell, l.name, row
	a.name = path.Base(strings.ReplaceAll(text, `\`, "/"))
	if text == "" || len(a.name) > maxMemberName {
		a.name = fmt.Sprintf("row-%d", row)
	}
	return a
}
