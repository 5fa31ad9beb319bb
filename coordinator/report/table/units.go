package table

import (
	"slices"
	"strings"

	"ddiff/coordinator/report/aggregate"
	"ddiff/coordinator/report/sweep"
)

// sharedNote states the units of a table, and what its rows have in common: what is no column.
func sharedNote(s aggregate.Summary) string {
	const units = "PSNR, ±95%, baseline and gain in dB."
	first := s.ResolvedRow()
	if first == nil {
		return units
	}
	var parts []string
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
		if !r.Cell().Resolved() {
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
			parts = append(parts, task+" "+strings.Join(common, " "))
		}
	}
	if len(parts) == 0 {
		return units
	}
	return "All rows: " + strings.Join(parts, ", ") + ". " + units
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
