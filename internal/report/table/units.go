package table

import (
	"slices"
	"strings"

	"ddiff/internal/report/aggregate"
	"ddiff/internal/report/sweep"
)

// sharedNotes state what the rows of a table have in common, what is no column, and its units.
func (t *Table) sharedNotes(s aggregate.Summary) (out []Note) {
	all, params := sharedTexts(s)
	if len(all) > 0 {
		out = append(out, Note{Text: "All rows: " + strings.Join(all, ", ") + "."})
	}
	if len(params) > 0 {
		out = append(out, Note{Text: "Parameters: " + strings.Join(params, ", ") + ".", Place: Nowhere})
	}
	return append(out, Note{Text: t.units(), Place: Nowhere})
}

// units names the columns of each unit.
func (t *Table) units() string {
	var units []string
	names := make(map[string][]string)
	for _, c := range t.Columns {
		if c.Unit == "" {
			continue
		}
		if names[c.Unit] == nil {
			units = append(units, c.Unit)
		}
		names[c.Unit] = append(names[c.Unit], c.Name)
	}
	var parts []string
	for _, unit := range units {
		all := names[unit]
		text := strings.Join(all[:len(all)-1], ", ")
		if text != "" {
			text += " and "
		}
		parts = append(parts, text+all[len(all)-1]+" in "+unit)
	}
	return "Units: " + strings.Join(parts, "; ") + "."
}

// sharedTexts are the properties that all rows share, and the parameters that all rows of a task share.
func sharedTexts(s aggregate.Summary) (parts, shared []string) {
	first := s.ResolvedRow()
	if first == nil {
		return nil, nil
	}
	for _, p := range []struct {
		varies bool
		text   string
	}{
		{s.Varying.Sigma, "σ " + first.Sigma.String()},
		{s.Varying.Photons || first.Photons == 0, first.PhotonsText() + " photons of a white pixel"},
		{s.Varying.Size, first.Size},
		{s.Varying.Prior || first.Prior == "", "prior " + sweep.ShortPrior(first.Prior)},
		{s.Varying.Preset || first.Preset == "", "preset " + first.Preset},
		{s.Varying.Precision || first.PrecisionText() == "", first.PrecisionText()},
	} {
		if !p.varies {
			parts = append(parts, p.text)
		}
	}
	settings := make([]string, 0, len(s.Rows))
	params := make(map[string][]string)
	var tasks []string
	for i := range s.Rows {
		r := &s.Rows[i]
		if !r.Resolved() {
			continue
		}
		settings = append(settings, r.Settings)
		if _, known := params[r.Task]; !known {
			tasks = append(tasks, r.Task)
		}
		params[r.Task] = append(params[r.Task], r.Params)
	}
	for _, a := range commonAssignments(settings) {
		if strings.HasPrefix(a, "steps=") {
			parts = append(parts, a)
		}
	}
	for _, task := range tasks {
		if common := commonAssignments(params[task]); len(common) > 0 {
			shared = append(shared, task+" "+strings.Join(common, " "))
		}
	}
	return parts, shared
}

// commonAssignments are those that all lists have.
func commonAssignments(lists []string) []string {
	if len(lists) == 0 {
		return nil
	}
	return slices.DeleteFunc(sweep.Assignments(lists[0]), func(a string) bool {
		return slices.ContainsFunc(lists, func(list string) bool { return !slices.Contains(sweep.Assignments(list), a) })
	})
}
