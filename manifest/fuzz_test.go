package manifest

import (
	"errors"
	"strings"
	"testing"

	"ddiff/internal/fuzztest"
)

// Parse never panics, and gives either a spec in range or errors of one line each.
func FuzzParse(f *testing.F) {
	f.Add(fullSpec)
	f.Add("dataset: {path: x}\ntasks: [{name: a, params: {x: 1}}]\n")
	f.Add("solver: &x {a: 1}\ntasks: [{solver: *x}]\n")
	f.Add("tasks: [{name: a, sigma: [" + strings.Repeat("1,", 99) + "1], params: {x: [" + strings.Repeat("1,", 99) + "1], y: [1, 2, 3]}}]\n")
	f.Fuzz(func(t *testing.T, text string) {
		var s *Spec
		var err error
		fuzztest.Limit(t, 8<<20+8192*len(text), func() { s, err = Parse("c.yaml", []byte(text), "/base") })
		if err == nil {
			if problems := s.checkRanges(); len(problems) > 0 {
				t.Errorf("accepted out of range: %v", joinByLine(problems))
			}
			if id := s.ID(""); strings.HasSuffix(id, "-invalid") {
				t.Errorf("no identity: %s", id)
			}
			s.Validate(fullCatalogue()) //nolint:errcheck // any answer will do, a panic will not
			return
		}
		for _, e := range split(err) {
			var fieldErr *FieldError
			if !errors.As(e, &fieldErr) || fieldErr.File != "c.yaml" || strings.ContainsAny(e.Error(), "\r\n") {
				t.Errorf("no place, or more than one line, in %q", e)
			}
		}
	})
}

// split takes a joined error apart.
func split(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

// FuzzCSV and FuzzJSONL: any bytes give rows with distinct names in sequence, and errors
// that name their line.
func FuzzCSV(f *testing.F) {
	f.Add("image,task,sigma,param.x\na.png,hdr,0.1,2\n\"b,c.png\",,,\n")
	f.Add("measurement\ny.npy\ny.npy\n")
	f.Fuzz(func(t *testing.T, text string) {
		fuzzList(t, text, listCSV)
	})
}

func FuzzJSONL(f *testing.F) {
	f.Add("{\"image\": \"a.png\", \"sigma\": 0.1, \"param.x\": 2}\n{\"image\": null}\n")
	f.Add("{\"image\": \"a.png\", \"image\": \"b.png\"}\n[1]\n{}{}\n")
	f.Fuzz(func(t *testing.T, text string) {
		fuzzList(t, text, listJSONL)
	})
}

func fuzzList(t *testing.T, text string, format ListFormat) {
	fuzztest.Limit(t, 8<<20+4096*len(text), func() { readFuzzed(t, text, format) })
}

func readFuzzed(t *testing.T, text string, format ListFormat) {
	names := map[string]bool{}
	rows := Number(t.Context(), Dataset{}, func(emit func(Row) error) error {
		return ReadList(format, strings.NewReader(text), nowhere("list"), emit)
	})
	for r, err := range rows {
		if err != nil {
			if !errors.Is(err, ErrBadList) && !errors.Is(err, ErrEmptyDataset) {
				t.Errorf("unexpected kind of error: %v", err)
			}
			break
		}
		if r.Index != len(names) || names[r.Name] {
			t.Errorf("row %+v after %d rows", r, len(names))
		}
		names[r.Name] = true
		var fieldErr *FieldError
		if r.Err != nil && (!errors.As(r.Err, &fieldErr) || fieldErr.Line == 0 || fieldErr.File != "list" || strings.ContainsAny(r.Err.Error(), "\r\n")) {
			t.Errorf("no place, or more than one line, in %q", r.Err)
		}
		if r.Err == nil && r.Image == "" && r.Measurement == "" {
			t.Errorf("row %+v has nothing to restore", r)
		}
	}
}
