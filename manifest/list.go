package manifest

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"ddiff/internal/regular"
	"ddiff/restore/item"
)

// maxListLine is the longest line of a list, in bytes.
const maxListLine = 1 << 20

// ListFormat is the format of a list.
type ListFormat string

// The formats. Each has one row per line, so that a bad line affects one row.
const (
	listCSV   ListFormat = "csv"   // a header, then one line of cells per row
	listJSONL ListFormat = "jsonl" // one flat JSON object per row
	listText  ListFormat = "txt"   // one path or address of an image per row; # starts a comment
)

// ListConfig configures [ReadList]. File and Locate are required.
type ListConfig struct {
	// File is the name of the list in errors.
	File string
	// Columns is the mapping of the [Dataset].
	Columns map[string]string
	// Locate finds a file by its text in the list. Its error becomes the row's.
	Locate func(text string) (Place, error)
}

// Place is the location of a file of a list.
type Place struct {
	// Address is an absolute path or an address.
	Address string
	// Name is the slash-separated name of the file, with its extension. It is the default name of
	// the row; its extension is the type of the file. An address may have no extension.
	Name string
}

// errEmptyList is the error of a list without rows.
var errEmptyList = fmt.Errorf("%w: the list has no line with an image or a measurement; add one per row", ErrEmptyDataset)

// ReadList calls emit for each row of a list, with one line in memory. [Number] adds Index and unique names. The errors are those of
// [Rows]; an error of emit ends it.
func ReadList(format ListFormat, r io.Reader, c ListConfig, emit func(Row) error) error {
	l := newLines(c, r)
	var parse func(text string) (row Row, ok bool)
	switch format {
	case listCSV:
		columns, err := l.header()
		if err != nil {
			return err
		}
		parse = func(text string) (Row, bool) { return l.cells(text, columns), strings.Trim(text, ", \t") != "" } // spreadsheets write rows without values
	case listJSONL:
		parse = func(text string) (Row, bool) { return l.object(text), true }
	case listText: // a path or an address
		parse = func(text string) (Row, bool) {
			text = strings.TrimSpace(text)
			return l.row([]Field{{"image", text}}), !strings.HasPrefix(text, "#")
		}
	default:
		return fmt.Errorf("%w: unknown list format %q", ErrBadList, format)
	}
	empty := true
	for {
		text, ok := l.next()
		if !ok && empty {
			return cmp.Or(l.err(), errEmptyList)
		}
		if !ok {
			return l.err()
		}
		if row, ok := parse(text); ok {
			empty = false
			if err := emit(row); err != nil {
				return err
			}
		}
	}
}

// FormatOf returns the format of a list by the name of its file, or "" for other files.
func FormatOf(path string) ListFormat {
	ext := ListFormat(strings.TrimPrefix(strings.ToLower(filepath.Ext(path)), "."))
	if slices.Contains([]ListFormat{listCSV, listJSONL, listText}, ext) {
		return ext
	}
	return ""
}

// lines scans a list with one line in memory.
type lines struct {
	ListConfig
	scan   *bufio.Scanner
	line   int
	utf16  bool
	fields []Field // of a line
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
			if l.utf16 = strings.HasPrefix(text, "\xff\xfe") || strings.HasPrefix(text, "\xfe\xff"); l.utf16 {
				return "", false
			}
		}
		if strings.TrimSpace(text) != "" {
			return text, true
		}
	}
	return "", false
}

// err returns the error that ended the lines, nil at the end of the file.
func (l *lines) err() error {
	switch err := l.scan.Err(); {
	case l.utf16:
		return fmt.Errorf("%w: %w", ErrBadList, l.problem("", errors.New("is in UTF-16; save it as UTF-8")))
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("%w: %w", ErrBadList,
			&FieldError{File: l.File, Line: l.line + 1, Err: errors.New("the line is longer than 1 MiB; write one row per line")})
	case err != nil:
		return fmt.Errorf("%w: %w", ErrBadList, &FieldError{File: l.File, Line: l.line + 1, Err: reason(err)})
	}
	return nil
}

func (l *lines) problem(field string, err error) *FieldError {
	return &FieldError{File: l.File, Line: l.line, Field: field, Err: err}
}

// row returns a row from the fields of the current line.
func (l *lines) row(fields []Field) Row { return l.Row(l.line, "line", fields) }

// bad returns the row of a line that cannot be parsed.
func (l *lines) bad(field string, err error) Row {
	return Row{Name: fmt.Sprintf("line-%d", l.line), Err: l.problem(field, err)}
}

func (s *stream) list(path string, format ListFormat, columns map[string]string) error {
	f, _, err := regular.Open(path, regular.NoLimit)
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: %w; check its permissions", ErrNoDataset, reason(err))
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoDataset, reason(err))
	}
	defer f.Close() // opened for reading
	c := ListConfig{File: filepath.Base(path), Columns: columns, Locate: func(text string) (Place, error) {
		return LocateFile(filepath.Dir(path), text)
	}}
	return ReadList(format, f, c, s.emit)
}

// header reads the header of a CSV list and returns the columns of a row that each cell of a line fills.
func (l *lines) header() ([][]string, error) {
	text, ok := l.next()
	if !ok {
		if err := l.err(); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%w: %w", ErrBadList, &FieldError{File: l.File, Err: errors.New("has no header; the first line names the columns, such as image,task")})
	}
	if strings.HasPrefix(strings.ToLower(text), "sep=") { // of spreadsheets
		if text, ok = l.next(); !ok {
			return nil, cmp.Or(l.err(), errEmptyList)
		}
	}
	header, err := splitCSV(text)
	var columns [][]string
	if err == nil {
		err = checkSeparators(text)
	}
	if err == nil {
		for i, name := range header {
			header[i] = strings.TrimSpace(name)
		}
		columns, err = l.columnsOf(header, true)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadList, l.problem("", err))
	}
	return columns, nil
}

// checkSeparators refuses the header of a list whose cells or lines are not separated as those of a CSV list.
func checkSeparators(header string) error {
	switch {
	case strings.Contains(header, "\r"):
		return errors.New("its lines end in CR alone; save the list with LF or CRLF at the end of lines")
	case strings.Contains(header, ","):
		return nil
	case strings.ContainsAny(header, ";\t|"):
		return errors.New("its cells are not separated by commas; save the list with commas between cells, and points in numbers")
	}
	return nil
}

// cells returns the row of a line of a CSV list. A quoted cell may contain commas, but no line breaks.
func (l *lines) cells(text string, columns [][]string) Row {
	values, err := splitCSV(text)
	if err == nil && len(values) != len(columns) {
		err = fmt.Errorf("has %d cells, the header has %d", len(values), len(columns))
	}
	if err != nil {
		return l.bad("", err)
	}
	l.fields = l.fields[:0] // reused
	for i, value := range values {
		for _, column := range columns[i] {
			l.fields = append(l.fields, Field{column, strings.TrimSpace(value)})
		}
	}
	return l.row(l.fields)
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

// object returns the row of a line of a JSONL list, an object with the columns of a CSV list as keys. A null counts as an absent key.
func (l *lines) object(text string) Row {
	fields, key, err := parseObject(text, l.Columns)
	if err != nil {
		return l.bad(key, err)
	}
	return l.row(fields)
}

// parseObject parses one flat JSON object. Key is the key of the error. The values of ignored keys are arbitrary.
func parseObject(text string, columns map[string]string) (fields []Field, key string, err error) {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	if begin, err := dec.Token(); err == nil && begin != json.Delim('{') {
		return nil, "", errors.New(`want a JSON object, as in {"image": "a.png"}`)
	}
	seen := map[string]bool{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, "", notJSON(err)
		}
		key, _ := token.(string) // the decoder accepts no other key
		if seen[key] {
			return nil, key, errors.New("is repeated; remove one")
		}
		seen[key] = true
		var value any
		if err := dec.Decode(&value); err != nil {
			return nil, "", notJSON(err)
		}
		fills, err := rowColumns(columns, key)
		if err != nil {
			return nil, "", err
		}
		for _, column := range fills {
			text, err := fieldText(column, value)
			if err != nil {
				return nil, key, err
			}
			fields = append(fields, Field{column, text})
		}
	}
	if _, err := dec.Token(); err != nil { // the end of the object, or the error before it
		return nil, "", notJSON(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, "", errors.New("has text after the object; write one object per line")
	}
	return fields, "", nil
}

// fieldText checks the type of a value: a number for numeric columns, text for the others.
func fieldText(column string, value any) (string, error) {
	numeric := isNumeric(column)
	switch v := value.(type) {
	case nil:
		return "", nil
	case json.Number:
		if numeric {
			return v.String(), nil
		}
	case string:
		if !numeric || column == "sigma" && v == item.SigmaAuto.String() {
			return v, nil
		}
	}
	if numeric {
		return "", errors.New("want a number")
	}
	return "", errors.New("want text in quotes")
}

func isNumeric(column string) bool {
	return slices.Contains([]string{"sigma", "photons", "seed", "width", "height"}, column) || strings.HasPrefix(column, paramPrefix)
}

func notJSON(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("not valid JSON: %w", err)
}
