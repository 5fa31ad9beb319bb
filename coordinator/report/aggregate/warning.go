package aggregate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ddiff/coordinator/report/entry"
)

// countFinished counts finished items: those with warnings by code, and in measured ones those of a known precision.
func (r *Row) countFinished(done []*entry.Entry, measured bool) {
	count := func(of *map[string]int, key string) {
		if *of == nil {
			*of = make(map[string]int)
		}
		(*of)[key]++
	}
	for _, e := range done {
		if e.Warnings != "" {
			r.Warned++
			for code := range strings.SplitSeq(e.Warnings, ";") {
				count(&r.Warnings, code)
			}
		}
		if measured && e.Used != "" {
			count(&r.Precisions, e.Used)
		}
	}
}

// Suspect reports whether at least half of the finished items have warnings.
func (r *Row) Suspect() bool { return r.Warned > 0 && 2*r.Warned >= r.Items-r.Failed-r.Dead }

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
