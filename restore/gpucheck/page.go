package gpucheck

import (
	_ "embed" // the page
	"io"
	"slices"
	"strings"
	"text/template"
)

//go:embed page.md.tmpl
var pageTemplate string

// WritePage writes the report in Markdown.
func (r *Report) WritePage(w io.Writer) error {
	page, err := template.New("page").Funcs(template.FuncMap{
		"line":       r.Line,
		"precisions": r.precisions,
		"ours":       r.networkSpeed,
		"ratio":      func(x, y float64) float64 { return x / y },
		"join":       func(s []string) string { return strings.Join(s, "; ") },
		// flat makes a text a cell of a table.
		"flat": func(s string) string { return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", "/") },
	}).Parse(pageTemplate)
	if err != nil {
		return err
	}
	return page.Execute(w, r)
}

// precisions returns the precisions of the tasks' restorations.
func (r *Report) precisions() []string {
	var out []string
	for _, t := range r.Tasks {
		for _, x := range t.Results {
			if !slices.Contains(out, x.Precision) {
				out = append(out, x.Precision)
			}
		}
	}
	return out
}

// networkSpeed returns the timing of the random network that corresponds to PyTorch's, or nil.
func (r *Report) networkSpeed(t TorchTiming) *Speed {
	i := slices.IndexFunc(r.Speed, func(s Speed) bool {
		return s.Network == randomNetwork && s.Precision == t.Precision && s.Batch == t.Batch && s.Error == ""
	})
	if i < 0 {
		return nil
	}
	return &r.Speed[i]
}
