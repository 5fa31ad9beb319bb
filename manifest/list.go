package manifest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// maxListLine is the longest line of a list, in bytes.
const maxListLine = 1 << 20

// listColumns are the fields of a list, beside those that begin with paramPrefix.
var listColumns = []string{"image", "measurement", "name", "task", "sigma", "seed", "mask", "kernel"}

// paramPrefix begins the columns that set a parameter of the operator.
const paramPrefix = "param."

// cell is one field of one line of a list, still as text. An empty text is not set.
type cell struct {
	column string
	text   string
}

// checkColumn refuses names that a list cannot have.
func checkColumn(name string) error {
	if param, ok := strings.CutPrefix(name, paramPrefix); ok {
		if param == "" {
			return fmt.Errorf("column %q names no parameter, want %sNAME", name, paramPrefix)
		}
		return nil
	}
	for _, c := range listColumns {
		if c == name {
			return nil
		}
	}
	return unknown("column", name, append(listColumns[:len(listColumns):len(listColumns)], paramPrefix+"NAME"))
}

// lines scans a list. Both formats hold one row per line, so that one bad line is one bad
// row, and memory is bounded by the longest line.
type lines struct {
	file string // the list as errors name it
	scan *bufio.Scanner
	line int
}

func newLines(file string, r io.Reader) *lines {
	scan := bufio.NewScanner(r)
	scan.Buffer(make([]byte, 0, 4096), maxListLine)
	return &lines{file: file, scan: scan}
}

// next returns the next line that is not blank, without a byte order mark.
func (l *lines) next() (string, bool) {
	for l.scan.Scan() {
		l.line++
		text := l.scan.Text()
		if l.line == 1 {
			text = strings.TrimPrefix(text, "\uFEFF")
		}
		if strings.TrimSpace(text) != "" {
			return text, true
		}
	}
	return "", false
}

// err is what ended the scan, nil at the end of the file.
func (l *lines) err() error {
	switch err := l.scan.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("%w: %w", ErrBadList,
			&FieldError{File: l.file, Line: l.line + 1, Err: errors.New("the line is longer than 1 MiB; write one row per line")})
	case err != nil:
		return fmt.Errorf("%w: %w", ErrBadList, &FieldError{File: l.file, Line: l.line + 1, Err: reason(err)})
	}
	return nil
}

// problem is something wrong with the current line.
func (l *lines) problem(field string, err error) *FieldError {
	return &FieldError{File: l.file, Line: l.line, Field: field, Err: err}
}

// list opens a list and hands it to the reader of its format.
func (s *stream) list(path string, read func(l *lines, base string) error) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("%w: %w; check its permissions", ErrNoDataset, reason(err))
	}
	defer f.Close() // nothing was written
	if err := read(newLines(filepath.Base(path), f), filepath.Dir(path)); err != nil {
		return err
	}
	if s.rows == 0 {
		return fmt.Errorf("%w: the list has no line with an image or a measurement; add one per row", ErrEmptyDataset)
	}
	return nil
}

// record makes a row of the cells of the current line. Relative paths start from base.
func record(l *lines, base string, cells []cell) Row {
	var r Row
	var name string
	for _, c := range cells {
		if c.text == "" {
			continue
		}
		if err := r.set(c, base, &name); err != nil && r.Err == nil {
			r.Err = l.problem(c.column, err)
		}
	}
	if r.Image == "" && r.Measurement == "" && r.Err == nil {
		r.Err = l.problem("", errors.New("has neither image nor measurement; give one of them"))
	}
	r.Name = name
	if name == "" {
		r.Name = listName(base, r, l.line)
	}
	return r
}

// set puts one cell into the row.
func (r *Row) set(c cell, base string, name *string) error {
	switch c.column {
	case "image":
		r.Image = resolvePath(base, c.text)
		if !isImage(r.Image) {
			return fmt.Errorf("%q is not an image that is read, want a file that ends in %s", clip(c.text), imageKinds())
		}
		return checkCell(c.text, r.Image)
	case "measurement":
		r.Measurement = resolvePath(base, c.text)
		if !strings.EqualFold(filepath.Ext(c.text), ".npy") {
			return fmt.Errorf("%q is not a stored measurement, want a .npy file", clip(c.text))
		}
		return checkCell(c.text, r.Measurement)
	case "mask":
		r.Overrides.Mask = resolvePath(base, c.text)
		return checkCell(c.text, r.Overrides.Mask)
	case "kernel":
		r.Overrides.Kernel = resolvePath(base, c.text)
		return checkCell(c.text, r.Overrides.Kernel)
	case "name":
		if err := checkName(c.text); err != nil {
			return err
		}
		*name = c.text
	case "task":
		r.Overrides.Task = c.text
	case "sigma":
		sigma, err := parseNumber(c.text)
		if err != nil {
			return err
		}
		if err := checkSigma(sigma); err != nil {
			return err
		}
		r.Overrides.Sigma = &sigma
	case "seed":
		seed, err := strconv.ParseUint(strings.TrimSpace(c.text), 10, 64)
		if err != nil {
			return fmt.Errorf("%q is not an integer from 0 to 18446744073709551615", clip(c.text))
		}
		r.Overrides.Seed = &seed
	default:
		x, err := parseNumber(c.text)
		if err != nil {
			return err
		}
		if r.Overrides.Params == nil {
			r.Overrides.Params = map[string]float64{}
		}
		r.Overrides.Params[strings.TrimPrefix(c.column, paramPrefix)] = x
	}
	return nil
}

// checkCell names the path as the list has it.
func checkCell(text, path string) error {
	if err := checkFile(path); err != nil {
		return fmt.Errorf("%q: %w", clip(text), err)
	}
	return nil
}

// parseNumber reads a finite decimal number.
func parseNumber(text string) (float64, error) {
	x, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		return 0, fmt.Errorf("%q is not a finite number", clip(text))
	}
	return x, nil
}

// listName names a row that has no name of its own after its file.
func listName(base string, r Row, line int) string {
	path := r.Image
	if path == "" {
		path = r.Measurement
	}
	if path == "" {
		return fmt.Sprintf("line-%d", line)
	}
	if rel, err := filepath.Rel(base, path); err == nil && !strings.HasPrefix(rel, "..") {
		return filepath.ToSlash(stem(rel))
	}
	return stem(filepath.Base(path))
}
