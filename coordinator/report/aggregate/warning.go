package aggregate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ddiff/coordinator/report/entry"
)

// countWarnings counts the warnings of finished items.
func (r *Row) countWarnings(done []*entry.Entry) {
	for _, e := range done {
		if e.Warnings == "" {
			continue
		}
		r.Warned++
		if r.Warnings == nil {
			r.Warnings = make(map[string]int)
		}
		for code := range strings.SplitSeq(e.Warnings, ";") {
			r.Warnings[code]++
		}
	}
}

// Warned returns the number of finished items with warnings, and those with a warning of each code.
func (s *Summary) Warned() (items int, codes map[string]int) {
	codes = make(map[string]int)
	for i := range s.Rows {
		items += s.Rows[i].Warned
		for code, n := range s.Rows[i].Warnings {
			codes[code] += n
		}
	}
	return items, codes
}

// WarningCounts lists the codes of warnings with the numbers of their items, sorted by code: "flat 1, residual 3".
func WarningCounts(codes map[string]int) string {
	var out []string
	for _, code := range slices.Sorted(maps.Keys(codes)) {
		out = append(out, fmt.Sprintf("%s %d", code, codes[code]))
	}
	return strings.Join(out, ", ")
}
