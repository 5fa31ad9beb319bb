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

// groupColumn reads a column in one row group.
type groupColumn struct {
	text   *values
	inline bool    // the files are in the cells
	cells  *values // those cells, if some are empty: there the text is a path, or the row has no file
}

// group emits the rows of row group g, which begins with row first of the file.
func (r *reading) group(
	a Address, t *table, g int, columns []parquetColumn, first int64, config manifest.ListConfig, emit emitter,
) error {
	failed := func(err error) error { return fmt.Errorf("row group %d: %w", g, err) }
	var open []*values
	defer func() {
		for _, v := range open {
			v.close()
		}
	}()
	values := func(l leaf) (*values, error) {
		v, err := t.values(g, l, 0)
		if err != nil {
			return nil, failed(err)
		}
		open = append(open, v)
		return v, nil
	}
	group := make([]groupColumn, len(columns))
	for i, c := range columns {
		var err error
		if c.text != nil {
			if group[i].text, err = values(*c.text); err != nil {
				return err
			}
		}
		if c.bytes == nil {
			continue
		}
		nulls := t.nulls(g, *c.bytes)
		group[i].inline = nulls < t.file.RowGroups()[g].NumRows()
		if group[i].inline && nulls > 0 {
			if group[i].cells, err = values(*c.bytes); err != nil {
				return err
			}
		}
	}
	for n := range t.file.RowGroups()[g].NumRows() {
		number := int(first + n + 1)
		var fields []manifest.Field
		var bad error
		for i, c := range columns {
			text, inline := "", group[i].inline
			if group[i].text != nil {
				v, err := group[i].text.next()
				if err != nil {
					return failed(err)
				}
				if text, err = c.text.format(v); err != nil && bad == nil {
					bad = &manifest.FieldError{File: config.File, Line: number, Err: fmt.Errorf("column %s %w", c.text.name, err)}
				}
			}
			if group[i].cells != nil {
				v, err := group[i].cells.next()
				if err != nil {
					return failed(err)
				}
				inline = !v.IsNull()
			}
			if inline {
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

// nulls returns how many values of a leaf are missing in row group g, 0 if the file does not state it.
func (t *table) nulls(g int, l leaf) int64 {
	_, meta, err := t.chunk(g, l)
	if err != nil {
		return 0
	}
	return meta.Statistics.NullCount
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
