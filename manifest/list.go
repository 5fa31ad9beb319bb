package manifest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxListLine is the longest line of a list, in bytes.
const maxListLine = 1 << 20

// ListFormat is how the lines of a list are written.
type ListFormat string

// The formats. All of them hold one row per line, so that one bad line is one bad row.
const (
	ListCSV   ListFormat = "csv"   // a header, then one line of cells per row
	ListJSONL ListFormat = "jsonl" // one flat JSON object per row
	ListText  ListFormat = "txt"   // the path or the address of one image per row; # begins a comment
)

// ListConfig says how a list becomes rows. File and Locate are required.
type ListConfig struct {
	// File is the list as errors name it.
	File string
	// Columns is that of the [Dataset].
	Columns map[string]string
	// Locate finds what a list calls a file. Its error is that of the row.
	Locate func(text string) (Place, error)
}

// Place is where a file is that a list names.
type Place struct {
	// Address is what the row gets: an absolute path, or an address.
	Address string
	// Name is the file for people, with its extension and slashes between its parts. It
	// becomes the name of a row that has none, and its extension says what the file is; an
	// address may have none.
	Name string
}

// ListRows reads a list line by line, in the memory of one line. Index and unique names are
// left to [Number]; the errors are those of [Rows].
func ListRows(ctx context.Context, format ListFormat, r io.Reader, c ListConfig) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		rows := 0
		err := readList(format, newLines(c, r), func(row Row) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			rows++
			if !yield(row, nil) {
				return errStop
			}
			return nil
		})
		if err == nil && rows == 0 {
			err = errEmptyList()
		}
		if err != nil && !errors.Is(err, errStop) {
			yield(Row{}, err)
		}
	}
}

// errEmptyList is the problem of a list without rows.
func errEmptyList() error {
	return fmt.Errorf("%w: the list has no line with an image or a measurement; add one per row", ErrEmptyDataset)
}

// readList hands each row of a list to emit, whose error ends the reading.
func readList(format ListFormat, l *lines, emit func(Row) error) error {
	switch format {
	case ListCSV:
		return readCSV(l, emit)
	case ListJSONL:
		return readJSONL(l, emit)
	case ListText:
		return readText(l, emit)
	}
	return fmt.Errorf("%w: no list is written as %q", ErrBadList, format)
}

// FormatOf tells the format of a list from its file's name, or "" when it is none.
func FormatOf(path string) ListFormat {
	ext := ListFormat(strings.TrimPrefix(strings.ToLower(filepath.Ext(path)), "."))
	if slices.Contains([]ListFormat{ListCSV, ListJSONL, ListText}, ext) {
		return ext
	}
	return ""
}

// lines scans a list. Memory is bounded by the longest line.
type lines struct {
	ListConfig
	scan *bufio.Scanner
	line int
}

func newLines(c ListConfig, r io.Reader) *lines {
	scan := bufio.NewScanner(r)
	scan.Buffer(make([]byte, 0, 4096), maxListLine)
	return &lines{ListConfig: c, scan: scan}
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
			&FieldError{File: l.File, Line: l.line + 1, Err: errors.New("the line is longer than 1 MiB; write one row per line")})
	case err != nil:
		return fmt.Errorf("%w: %w", ErrBadList, &FieldError{File: l.File, Line: l.line + 1, Err: reason(err)})
	}
	return nil
}

// problem is something wrong with the current line.
func (l *lines) problem(field string, err error) *FieldError {
	return &FieldError{File: l.File, Line: l.line, Field: field, Err: err}
}

// row makes a row of the fields of the current line.
func (l *lines) row(fields []Field) Row { return makeRow(l.ListConfig, l.line, "line", fields) }

// bad is the row of a line that cannot be taken apart.
func (l *lines) bad(field string, err error) Row {
	return Row{Name: fmt.Sprintf("line-%d", l.line), Err: l.problem(field, err)}
}

// list opens a list of this machine and reads it.
func (s *stream) list(path string, format ListFormat, columns map[string]string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("%w: %w; check its permissions", ErrNoDataset, reason(err))
	}
	defer f.Close() // nothing was written
	c := ListConfig{File: filepath.Base(path), Columns: columns, Locate: func(text string) (Place, error) {
		return LocateFile(filepath.Dir(path), text)
	}}
	if err := readList(format, newLines(c, f), s.emit); err != nil {
		return err
	}
	if s.rows == 0 {
		return errEmptyList()
	}
	return nil
}

// readText reads a list of paths or addresses.
func readText(l *lines, emit func(Row) error) error {
	for {
		text, ok := l.next()
		if !ok {
			return l.err()
		}
		text = strings.TrimSpace(text)
		if strings.HasPrefix(text, "#") {
			continue
		}
		if err := emit(l.row([]Field{{"image", text}})); err != nil {
			return err
		}
	}
}
