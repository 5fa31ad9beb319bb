package manifest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// listColumns holds the columns of a row, except those with paramPrefix.
var listColumns = []string{
	"image", "measurement", "name", "task", "sigma", "photons", "seed", "mask", "kernel", "sha256", "width", "height",
}

// paramPrefix starts the columns that set a parameter of the operator.
const paramPrefix = "param."

// checkColumn returns an error for an unknown column of a row.
func checkColumn(name string) error {
	if param, ok := strings.CutPrefix(name, paramPrefix); ok {
		if param == "" {
			return fmt.Errorf("column %q names no parameter, want %sNAME", name, paramPrefix)
		}
		return nil
	}
	if slices.Contains(listColumns, name) {
		return nil
	}
	return unknown("column", name, append(slices.Clone(listColumns), paramPrefix+"NAME"))
}

// columnName returns the list's name for a column of a row; empty for an ignored column.
func columnName(columns map[string]string, column string) string {
	if name, ok := columns[column]; ok {
		return name
	}
	return column
}

// rowColumns returns the columns of a row that a column of the list fills: usually one, none for an
// ignored column, several if the mapping says so. Without a mapping an unknown column is an error.
func rowColumns(columns map[string]string, name string) ([]string, error) {
	if len(columns) == 0 {
		return []string{name}, checkColumn(name)
	}
	var out []string
	for _, column := range slices.Sorted(maps.Keys(columns)) {
		if columns[column] == name {
			out = append(out, column)
		}
	}
	if _, mapped := columns[name]; !mapped && checkColumn(name) == nil {
		out = append(out, name)
	}
	return out, nil
}

// ColumnsOf returns the columns of a row that each column of a list's header fills; none for an ignored column. With
// strict, and without a mapping in Columns, an unknown column is an error. The error wraps [ErrBadList].
func (c ListConfig) ColumnsOf(header []string, strict bool) ([][]string, error) {
	out, err := c.columnsOf(header, strict)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadList, &FieldError{File: c.File, Err: err})
	}
	return out, nil
}

func (c ListConfig) columnsOf(header []string, strict bool) ([][]string, error) {
	out := make([][]string, len(header))
	filled := map[string]bool{}
	for i, name := range header {
		fills, err := rowColumns(c.Columns, name)
		switch {
		case err != nil && strict:
			return nil, err
		case err != nil:
			continue
		}
		if slices.Contains(header[:i], name) && (strict || len(fills) > 0) {
			return nil, fmt.Errorf("column %q is repeated; remove one", name)
		}
		out[i] = fills
		for _, column := range fills {
			filled[column] = true
		}
	}
	for _, column := range slices.Sorted(maps.Keys(c.Columns)) {
		if name := c.Columns[column]; name != "" && !slices.Contains(header, name) {
			return nil, fmt.Errorf("dataset.columns.%s: %w", column, unknown("column", name, header))
		}
	}
	if !filled["image"] && !filled["measurement"] {
		return nil, errors.New(`the header has neither column "image" nor "measurement"; add one of them` + mappingRemedy(header))
	}
	return out, nil
}

// mappingRemedy returns the remedy for lists with other column names.
func mappingRemedy(header []string) string {
	const most = 20
	if len(header) == 0 || len(header) > most {
		return ""
	}
	return fmt.Sprintf(", or map it to one of %s in dataset.columns", clip(strings.Join(header, ", ")))
}
