package manifest

import (
	"encoding/csv"
	"errors"
	"fmt"
	"strings"
)

// readCSV reads a list with a header and one row per line. A quoted cell may contain commas, but no line breaks.
func readCSV(l *lines, emit func(Row) error) error {
	text, ok := l.next()
	if !ok {
		if err := l.err(); err != nil {
			return err
		}
		return fmt.Errorf("%w: %w", ErrBadList, &FieldError{File: l.File, Err: errors.New("has no header; the first line names the columns, such as image,task")})
	}
	columns, err := parseHeader(l.ListConfig, text)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBadList, l.problem("", err))
	}
	var fields []Field
	for {
		text, ok := l.next()
		if !ok {
			return l.err()
		}
		values, err := splitCSV(text)
		if err == nil && len(values) != len(columns) {
			err = fmt.Errorf("has %d cells, the header has %d", len(values), len(columns))
		}
		var row Row
		if err != nil {
			row = l.bad("", err)
		} else {
			fields = fields[:0] // reused
			for i, value := range values {
				for _, column := range columns[i] {
					fields = append(fields, Field{column, strings.TrimSpace(value)})
				}
			}
			row = l.row(fields)
		}
		if err := emit(row); err != nil {
			return err
		}
	}
}

// parseHeader returns the columns of a row that each cell of a line fills.
func parseHeader(c ListConfig, text string) ([][]string, error) {
	header, err := splitCSV(text)
	if err != nil {
		return nil, err
	}
	for i, name := range header {
		header[i] = strings.TrimSpace(name)
	}
	return c.columnsOf(header, true)
}

// splitCSV splits one line into cells. It keeps the spaces around cells.
func splitCSV(text string) ([]string, error) {
	if !strings.Contains(text, `"`) {
		return strings.Split(text, ","), nil // faster than a reader per line
	}
	r := csv.NewReader(strings.NewReader(text))
	r.TrimLeadingSpace = true
	values, err := r.Read()
	var parseErr *csv.ParseError
	if errors.As(err, &parseErr) {
		return nil, fmt.Errorf("not valid CSV: %w", parseErr.Err)
	}
	return values, err
}
