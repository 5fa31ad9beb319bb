package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ddiff/manifest"
)

// Problem is what the images of one row of a table have in common: degradation, noise level and size.
type Problem struct {
	Task string `json:"task"`
	// Params are the complete parameters of the operator, such as "factor=4"; a semicolon separates several.
	Params string `json:"params,omitempty"`
	// Sigma is the standard deviation of the noise, in units of y, or auto: estimated for each measurement.
	Sigma manifest.Sigma `json:"sigma"`
	// Photons is the number of photons of a white pixel, 0 without their noise.
	Photons float64 `json:"photons,omitempty"`
	// Size is the working size in pixels and the fit, such as "128x128 resize", or "pad" where each image keeps its
	// size. Empty: the items failed before their size was known.
	Size string `json:"size,omitempty"`
}

func (p Problem) compare(q Problem) int {
	return cmp.Or(
		strings.Compare(p.Task, q.Task),
		compareAssignments(p.Params, q.Params),
		cmp.Compare(p.Sigma, q.Sigma),
		cmp.Compare(p.Photons, q.Photons),
		compareNatural(p.Size, q.Size),
	)
}

// Approach is one way to solve a problem.
type Approach struct {
	Method string `json:"method"`
	// Prior is the SHA-256 of the prior's file.
	Prior string `json:"prior,omitempty"`
	// Settings are the complete settings of the method, such as "steps=120;gamma0=8".
	Settings string `json:"settings,omitempty"`
	// Precision is the one that the campaign fixes for the score network; empty if it leaves the choice to the workers.
	Precision manifest.Precision `json:"precision,omitempty"`
}

func (a Approach) compare(b Approach) int {
	return cmp.Or(
		strings.Compare(a.Method, b.Method),
		strings.Compare(a.Prior, b.Prior),
		compareAssignments(a.Settings, b.Settings),
		cmp.Compare(a.Precision, b.Precision),
	)
}

// fullText names the approach by all that may tell it from others of its prior.
func (a Approach) fullText() string {
	text := a.Method + " (" + a.Settings + ")"
	if a.Precision != "" {
		text += " in " + string(a.Precision)
	}
	return text
}

// Cell is one cell of a sweep, the key of a table's row: a problem and an approach.
type Cell struct {
	Problem
	Approach
}

// resolved reports whether the group has its complete parameters and settings. The items of other groups failed
// before.
func (g Cell) resolved() bool { return g.Size != "" }

// mayBe reports whether an unresolved group's items would be items of the group to, as far as is known.
func (g Cell) mayBe(to Cell) bool {
	return to.resolved() && g.Task == to.Task && g.Method == to.Method && g.Precision == to.Precision && g.Sigma == to.Sigma && g.Photons == to.Photons &&
		containsAssignments(to.Params, g.Params)
}

// noiseSetting begins the setting of methods that is the noise level by default.
const noiseSetting = "noise_std="

// CellOf returns the cell of an item.
func CellOf(it *manifest.Item) (Cell, error) {
	settings, err := settingsText(it.Solver)
	if err != nil {
		return Cell{}, fmt.Errorf("read item %q: %w", it.Name, err)
	}
	sigma := manifest.Sigma(it.Sigma)
	if it.SigmaEstimated {
		// The settings that are the noise level by default would make each image a problem of its own.
		list := strings.Split(settings, ";")
		if i := slices.Index(list, noiseSetting+exact(it.Sigma)); i >= 0 {
			list[i] = noiseSetting + manifest.SigmaAuto.String()
		}
		settings = strings.Join(list, ";")
		sigma = manifest.SigmaAuto
	}
	return Cell{
		Problem{Task: it.Task, Params: paramsText(it.Params), Sigma: sigma, Photons: it.Photons, Size: sizeOf(it)},
		Approach{Method: it.Method, Prior: it.Prior, Settings: settings, Precision: it.Precision},
	}, nil
}

// Variants describes how each cell differs from the others, without task and method; "" where nothing varies.
func Variants(cells []Cell) []string {
	s := Summary{}
	for _, c := range cells {
		s.Rows = append(s.Rows, Row{Problem: c.Problem, Approach: c.Approach})
	}
	s.Varying = vary(s.Rows)
	known := s.variants()
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
			r.varyingParams = strings.ReplaceAll(r.Params, ";", " ")
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
		if text := r.precisionText(); text != "" { // a row without results may have none
			precision = cmp.Or(precision, text)
			v.Precision = v.Precision || text != precision
		}
	}
	for _, same := range tasks {
		v.Params = setVarying(same, func(r *Row) string { return r.Params }, func(r *Row, s string) { r.varyingParams = s }) || v.Params
	}
	for _, same := range methods {
		v.Settings = setVarying(same, func(r *Row) string { return r.Settings }, func(r *Row, s string) { r.varyingSettings = s }) || v.Settings
	}
	return v
}

func setVarying(rows []*Row, get func(*Row) string, set func(*Row, string)) bool {
	lists := make([]string, len(rows))
	for i, r := range rows {
		lists[i] = get(r)
	}
	varying, any := varyingAssignments(lists)
	for i, r := range rows {
		set(r, varying[i])
	}
	return any
}

// variants returns the varying properties of each row in one text.
func (s Summary) variants() map[Cell]string {
	out := make(map[Cell]string)
	for i := range s.Rows {
		r := &s.Rows[i]
		text := s.Varying.problemText(r)
		if approach := strings.TrimPrefix(s.Varying.approachText(r), r.Method); approach != "" {
			text += "," + approach
		}
		out[r.group()] = strings.TrimPrefix(text, ", ")
	}
	return out
}
