package manifest

import (
	"cmp"
	"fmt"
	"strings"
)

// Unknown returns the error of an invalid name, with the nearest valid name, or with all valid names, or "none", if
// none is near. Kind is "field", "task", ...
func Unknown(kind, name string, valid []string) error {
	if near := nearest(name, valid); near != "" {
		return fmt.Errorf("unknown %s %q (did you mean %q?)", kind, clip(name), near)
	}
	return fmt.Errorf("unknown %s %q (valid: %s)", kind, clip(name), cmp.Or(strings.Join(valid, ", "), "none"))
}

// nearest returns the valid name with these initials, as sr for super_resolution, or the first one with the smallest edit
// distance, or "" if the distance exceeds about a third of the name or replaces all of it.
func nearest(name string, valid []string) string {
	// A much longer name cannot be near.
	const longest = 64
	if len(name) > longest {
		return ""
	}
	for _, v := range valid {
		if len(name) > 1 && strings.EqualFold(name, initials(v)) {
			return v
		}
	}
	best, bestDistance := "", min(max(2, len(name)/3)+1, len(name))
	for _, v := range valid {
		if d := editDistance(name, v); d < bestDistance && d < len(v) {
			best, bestDistance = v, d
		}
	}
	return best
}

// initials returns the first letters of the words of a name.
func initials(name string) string {
	var b strings.Builder
	for word := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == '_' || r == '-' }) {
		b.WriteString(word[:1])
	}
	return b.String()
}

// editDistance returns the number of insertions, deletions, replacements and swaps of neighbours
// between two byte strings (optimal string alignment).
func editDistance(a, b string) int {
	beforeLast := make([]int, len(b)+1)
	last := make([]int, len(b)+1)
	row := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], beforeLast[j-2]+1)
			}
		}
		beforeLast, last, row = last, row, beforeLast
	}
	return last[len(b)]
}

// clip shortens text for an error line.
func clip(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	return s[:most] + "..."
}
