package manifest

import (
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// csv reads a list with a header line and one row per line. A quoted cell may hold commas,
// not line breaks.
func (s *stream) csv(l *lines, base string) error {
	text, ok := l.next()
	if !ok {
		if err := l.err(); err != nil {
			return err
		}
		return fmt.Errorf("%w: %w", ErrBadList, &FieldError{File: l.file, Err: errors.New("has no header; the first line names the columns, such as image,task")})
	}
	header, err := parseHeader(text)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBadList, l.problem("", err))
	}
	cells := make([]cell, len(header))
	for i, column := range header {
		cells[i].column = column
	}
	for {
		text, ok := l.next()
		if !ok {
			return l.err()
		}
		if err := s.emit(csvRow(l, base, text, cells)); err != nil {
			return err
		}
	}
}

// parseHeader checks the columns and their number.
func parseHeader(text string) ([]string, error) {
	header, err := splitCSV(text)
	if err != nil {
		return nil, err
	}
	for i, column := range header {
		header[i] = strings.TrimSpace(column)
		if err := checkColumn(header[i]); err != nil {
			return nil, err
		}
		if slices.Contains(header[:i], header[i]) {
			return nil, fmt.Errorf("column %q is repeated; remove one", header[i])
		}
	}
	if !slices.Contains(header, "image") && !slices.Contains(header, "measurement") {
		return nil, errors.New(`the header has neither column "image" nor "measurement"; add one of them`)
	}
	return header, nil
}

// csvRow fills the header's cells with one line. They are reused from line to line.
func csvRow(l *lines, base, text string, cells []cell) Row {
	values, err := splitCSV(text)
	if err == nil && len(values) != len(cells) {
		err = fmt.Errorf("has %d cells, the header has %d", len(values), len(cells))
	}
	if err != nil {
		return Row{Name: fmt.Sprintf("line-%d", l.line), Err: l.problem("", err)}
	}
	for i := range cells {
		cells[i].text = strings.TrimSpace(values[i])
	}
	return record(l, base, cells)
}

// splitCSV takes one line apart.
func splitCSV(text string) ([]string, error) {
	r := csv.NewReader(strings.NewReader(text))
	r.TrimLeadingSpace = true
	values, err := r.Read()
	var parseErr *csv.ParseError
	if errors.As(err, &parseErr) {
		return nil, fmt.Errorf("not valid CSV: %w", parseErr.Err)
	}
	return values, err
}
