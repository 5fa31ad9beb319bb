package manifest

import (
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"ddiff/internal/redact"
)

// Field is one cell of a list: its column of the row, and its text. An empty text means unset.
type Field struct {
	Column, Text string
}

// rowMaker assembles a row from fields.
type rowMaker struct {
	Row
	locate func(text string) (Place, error)
	given  string // name in the list
	file   string // name of the image, else of the measurement
}

// Row returns a row from the fields of entry n of the list, from 1; kind is the unit of n, such as line.
func (c ListConfig) Row(n int, kind string, fields []Field) Row {
	r := rowMaker{Row: Row{List: c.File, Line: n}, locate: c.Locate}
	problem := func(field string, err error) {
		if err != nil && r.Err == nil {
			r.Err = &FieldError{File: c.File, Line: n, Field: field, Err: err}
		}
	}
	for _, f := range fields {
		if f.Text != "" {
			problem(f.Column, r.set(f))
		}
	}
	problem("", r.check())
	switch {
	case r.given != "":
		r.Name = r.given
	case r.file != "":
		r.Name = strings.TrimSuffix(r.file, path.Ext(r.file))
	default:
		r.Name = fmt.Sprintf("%s-%d", kind, n)
	}
	return r.Row
}

// check validates the row as a whole.
func (r *rowMaker) check() error {
	switch {
	case r.Image == "" && r.Measurement == "":
		return errors.New("has neither image nor measurement; give one of them")
	case r.Image == "" && (r.ImageSHA256 != "" || r.Width != 0 || r.Height != 0):
		return errors.New("sha256, width and height describe the image, and the row has none; remove them")
	case (r.Width == 0) != (r.Height == 0):
		return errors.New("has only one of width and height; give both or none")
	}
	return nil
}

func (r *rowMaker) set(f Field) (err error) {
	switch f.Column {
	case "image":
		return r.setImage(f.Text)
	case "measurement":
		return r.setMeasurement(f.Text)
	case "mask":
		return r.setPlace(f.Text, &r.Overrides.Mask)
	case "kernel":
		return r.setPlace(f.Text, &r.Overrides.Kernel)
	case "name":
		if err := checkName(f.Text); err != nil {
			return err
		}
		r.given = f.Text
	case "task":
		r.Overrides.Task = f.Text
	case "sigma":
		sigma, err := ParseSigma(f.Text)
		if err != nil {
			return err
		}
		r.Overrides.Sigma = &sigma
		return sigma.Check()
	case "photons":
		photons, err := parseNumber(f.Text)
		if err != nil {
			return err
		}
		r.Overrides.Photons = &photons
		return checkPhotons(photons)
	case "seed":
		seed, err := strconv.ParseUint(strings.TrimSpace(f.Text), 10, 64)
		if err != nil {
			return fmt.Errorf("%q is not an integer from 0 to 18446744073709551615", clip(f.Text))
		}
		r.Overrides.Seed = &seed
	case "sha256":
		r.ImageSHA256, err = parseDigest(f.Text)
	case "width":
		r.Width, err = parsePixels(f.Text)
	case "height":
		r.Height, err = parsePixels(f.Text)
	default:
		x, err := parseNumber(f.Text)
		if err != nil {
			return err
		}
		if r.Overrides.Params == nil {
			r.Overrides.Params = map[string]float64{}
		}
		r.Overrides.Params[strings.TrimPrefix(f.Column, paramPrefix)] = x
	}
	return err
}

func (r *rowMaker) setImage(text string) error {
	p, err := r.locate(text)
	r.Image, r.file = p.Address, p.Name
	if p.Address != "" && !p.mayBe(IsImage) {
		return fmt.Errorf("%q is not a supported image, want a file that ends in %s", p.shown(text), imageKinds())
	}
	return err
}

func (r *rowMaker) setMeasurement(text string) error {
	p, err := r.locate(text)
	r.Measurement = p.Address
	if r.file == "" {
		r.file = p.Name
	}
	if p.Address != "" && !p.mayBe(IsMeasurement) {
		return fmt.Errorf("%q is not a stored measurement, want a .npy file or a picture (%s)", p.shown(text), imageKinds())
	}
	return err
}

// mayBe reports whether a file may be of a kind. An address without an extension may be of any kind.
func (p Place) mayBe(kind func(name string) bool) bool {
	return kind(p.Name) || path.Ext(p.Name) == "" && IsAddress(p.Address)
}

// shown returns the text for errors: of an address, whose query may be a secret, only the name.
func (p Place) shown(text string) string {
	if IsAddress(text) || IsAddress(p.Address) {
		return clip(p.Name)
	}
	return clip(text)
}

func (r *rowMaker) setPlace(text string, into *string) error {
	p, err := r.locate(text)
	*into = p.Address
	return err
}

// LocateFile finds a local file of a list in the directory base. The error describes an unreadable
// file; the place is valid in this case too.
func LocateFile(base, text string) (Place, error) {
	address := resolvePath(base, text)
	if IsAddress(address) {
		return Place{Address: address, Name: path.Base(redact.Address(address))}, fmt.Errorf("%q is not a local path", clip(redact.Address(text)))
	}
	name := filepath.Base(address)
	if rel, err := filepath.Rel(base, address); err == nil && !strings.HasPrefix(rel, "..") {
		name = rel
	}
	err := CheckFile(address)
	if err != nil {
		err = fmt.Errorf("%q: %w", clip(text), err)
	}
	return Place{Address: address, Name: filepath.ToSlash(name)}, err
}

// parseNumber reads a finite decimal number.
func parseNumber(text string) (float64, error) {
	x, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		return 0, fmt.Errorf("%q is not a finite number", clip(text))
	}
	return x, nil
}

func parsePixels(text string) (int, error) {
	const largest = 1 << 20
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n < 1 || n > largest {
		return 0, fmt.Errorf("%q is not an integer from 1 to %d", clip(text), largest)
	}
	return n, nil
}

// parseDigest reads a SHA-256 in hexadecimal digits of either case.
func parseDigest(text string) (string, error) {
	text = strings.ToLower(strings.TrimSpace(text))
	if raw, err := hex.DecodeString(text); err != nil || len(raw) != 32 {
		return "", fmt.Errorf("%q is not a SHA-256, want 64 hexadecimal digits", clip(text))
	}
	return text, nil
}

// listColumns holds the columns of a row, except those with paramPrefix.
var listColumns = []string{
	"image", "measurement", "name", "task", "sigma", "photons", "seed", "mask", "kernel", "sha256", "width", "height",
}

// paramPrefix starts the columns that set a parameter of the operator.
const paramPrefix = "param."

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
	return Unknown("column", name, append(slices.Clone(listColumns), paramPrefix+"NAME"))
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
	switch {
	case name == "": // the index that pandas writes
		return nil, nil
	case len(columns) == 0:
		err := checkColumn(name)
		if err != nil && !strings.HasPrefix(name, paramPrefix) && nearest(name, listColumns) == "" {
			err = fmt.Errorf("%w; with dataset.columns, as in {image: file_name}, other columns are ignored", err)
		}
		return []string{name}, err
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
		if name != "" && slices.Contains(header[:i], name) && (strict || len(fills) > 0) {
			return nil, fmt.Errorf("column %q is repeated; remove one", name)
		}
		out[i] = fills
		for _, column := range fills {
			filled[column] = true
		}
	}
	for _, column := range slices.Sorted(maps.Keys(c.Columns)) {
		if name := c.Columns[column]; name != "" && !slices.Contains(header, name) {
			return nil, fmt.Errorf("dataset.columns.%s: %w", column, Unknown("column", name, header))
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
