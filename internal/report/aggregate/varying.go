package aggregate

import (
	"cmp"
	"slices"
	"strings"

	"ddiff/internal/report/sweep"
)

// ProblemText describes the varying properties of a row's problem, except its task.
func (v Varying) ProblemText(r *Row) string {
	var parts []string
	if v.Params && r.VaryingParams != "" {
		parts = append(parts, r.VaryingParams)
	}
	if v.Sigma {
		parts = append(parts, "σ "+r.Sigma.String())
	}
	if v.Photons && r.Photons > 0 {
		parts = append(parts, r.PhotonsText()+" photons")
	}
	if v.Size && r.Size != "" {
		parts = append(parts, r.Size)
	}
	return strings.Join(parts, ", ")
}

// ApproachText describes a row's approach: its method and its varying properties.
func (v Varying) ApproachText(r *Row) string {
	parts := []string{r.Method}
	if v.Prior {
		parts = append(parts, "prior "+sweep.ShortPrior(r.Prior))
	}
	if v.Settings && r.VaryingSettings != "" {
		parts = append(parts, r.VaryingSettings)
	}
	if text := r.PrecisionText(); v.Precision && text != "" {
		parts = append(parts, text)
	}
	return strings.Join(parts, " ")
}

// Variants describes how each cell differs from the others, without task and method; "" where nothing varies.
func Variants(cells []sweep.Cell) []string {
	s := Summary{}
	for _, c := range cells {
		s.Rows = append(s.Rows, Row{Cell: c})
	}
	s.Varying = vary(s.Rows)
	known := s.Variants()
	out := make([]string, len(cells))
	for i, c := range cells {
		out[i] = known[c]
	}
	return out
}

// Varying names the properties in which the rows of a summary differ: the columns of its tables. A property that all
// rows share stands in the head of the page. Params vary if they differ between two rows of one task, settings if
// they differ between two rows of one task and method.
type Varying struct {
	Params   bool `json:"params,omitempty"`
	Sigma    bool `json:"sigma,omitempty"`
	Photons  bool `json:"photons,omitempty"`
	Size     bool `json:"size,omitempty"`
	Prior    bool `json:"prior,omitempty"`
	Preset   bool `json:"preset,omitempty"`
	Settings bool `json:"settings,omitempty"`
	// Precision: the precisions of the score network that the rows' items used, or whether their campaigns fix one.
	Precision bool `json:"precision,omitempty"`
}

// vary finds the varying properties of the resolved rows, and sets the varying parts of their parameters and settings.
func vary(rows []Row) Varying {
	var v Varying
	tasks := make(map[string][]*Row)
	methods := make(map[[2]string][]*Row)
	var first *Row
	precision := ""
	markUnfixed(rows)
	for i := range rows {
		r := &rows[i]
		if r.Size == "" {
			r.VaryingParams = strings.ReplaceAll(r.Params, ";", " ")
			continue
		}
		tasks[r.Task] = append(tasks[r.Task], r)
		key := [2]string{r.Task, r.Method}
		methods[key] = append(methods[key], r)
		if first == nil {
			first = r
		}
		v.Sigma = v.Sigma || r.Sigma != first.Sigma
		v.Photons = v.Photons || r.Photons != first.Photons
		v.Size = v.Size || r.Size != first.Size
		v.Prior = v.Prior || r.Prior != first.Prior
		v.Preset = v.Preset || r.Preset != first.Preset
		if text := r.PrecisionText(); text != "" { // a row without results may have none
			precision = cmp.Or(precision, text)
			v.Precision = v.Precision || text != precision
		}
	}
	for _, same := range tasks {
		v.Params = setVarying(same, func(r *Row) string { return r.Params }, func(r *Row, s string) { r.VaryingParams = s }) || v.Params
	}
	for _, same := range methods {
		settings := func(r *Row) string { return r.Settings }
		if !slices.ContainsFunc(same, func(r *Row) bool { return r.besideNoise() == r.Settings }) {
			settings = (*Row).besideNoise // the noise level says it
		}
		v.Settings = setVarying(same, settings, func(r *Row, s string) { r.VaryingSettings = s }) || v.Settings
	}
	return v
}

// besideNoise are the settings without noise_std, if it is the noise level of the row, as it is by default.
func (r *Row) besideNoise() string {
	return strings.Join(slices.DeleteFunc(sweep.Assignments(r.Settings), func(a string) bool { return a == "noise_std="+r.Sigma.String() }), ";")
}

func setVarying(rows []*Row, get func(*Row) string, set func(*Row, string)) bool {
	lists := make([]string, len(rows))
	for i, r := range rows {
		lists[i] = get(r)
	}
	varying, any := sweep.VaryingAssignments(lists)
	for i, r := range rows {
		set(r, varying[i])
	}
	return any
}

// SharedParams are the parameters that do not vary.
func (r *Row) SharedParams() string {
	return strings.Join(sweep.Without(r.Params, r.VaryingParams), ", ")
}

// Variants returns the varying properties of each row in one text.
func (s Summary) Variants() map[sweep.Cell]string {
	out := make(map[sweep.Cell]string)
	for i := range s.Rows {
		r := &s.Rows[i]
		text := s.Varying.ProblemText(r)
		if approach := strings.TrimPrefix(s.Varying.ApproachText(r), r.Method); approach != "" {
			text += "," + approach
		}
		out[r.Cell] = strings.TrimPrefix(text, ", ")
	}
	return out
}

// RowName names a row in a note by all that tells it from the others.
func (v Varying) RowName(r *Row) string {
	name := r.Task
	if problem := v.ProblemText(r); problem != "" {
		name += ", " + problem + ","
	}
	name += " " + v.ApproachText(r)
	if v.Preset {
		name += ", preset " + r.Preset
	}
	return name
}
