package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// countPrecisions counts the finished items of a measurement by precision.
func (r *Row) countPrecisions(done []*entry) {
	for _, e := range done {
		if e.Used == "" {
			continue
		}
		if r.Precisions == nil {
			r.Precisions = make(map[string]int)
		}
		r.Precisions[e.Used]++
	}
}

// precisionText is the text of a row in the column of precisions: those that its items used, or the one that its campaign
// fixes. Beside rows of campaigns that fix a precision, those that fix none say so.
func (r *Row) precisionText() string {
	if len(r.Precisions) == 0 {
		return string(r.Precision)
	}
	text := strings.Join(slices.Sorted(maps.Keys(r.Precisions)), " and ")
	if r.besideFixed {
		text += " (not fixed)"
	}
	return text
}

// markUnfixed marks the rows that fix no precision, if another one does.
func markUnfixed(rows []Row) {
	fixed := slices.ContainsFunc(rows, func(r Row) bool { return r.Precision != "" })
	for i := range rows {
		rows[i].besideFixed = fixed && rows[i].Precision == ""
	}
}

// maxMixedRows bounds the rows that the note on precisions names.
const maxMixedRows = 5

// precisionNote says if the items of a summary were computed in several precisions, and names the rows whose means mix them.
func precisionNote(s Summary) []string {
	all := make(map[string]int)
	var mixed []string
	for i := range s.Rows {
		for name, n := range s.Rows[i].Precisions {
			all[name] += n
		}
		if len(s.Rows[i].Precisions) > 1 {
			mixed = append(mixed, s.Varying.rowName(&s.Rows[i]))
		}
	}
	if len(all) < 2 {
		return nil
	}
	var counts []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		counts = append(counts, fmt.Sprintf("%d items in %s", all[name], name))
	}
	text := "Several precisions of the score network: " + strings.Join(counts, ", ") + "."
	if len(mixed) > 0 {
		text += " The means of these rows mix them: " + strings.Join(mixed[:min(len(mixed), maxMixedRows)], "; ")
		if more := len(mixed) - maxMixedRows; more > 0 {
			text += fmt.Sprintf("; and %d more rows", more)
		}
		text += ". Set precision in the campaign file to fix one."
	}
	return []string{text}
}
