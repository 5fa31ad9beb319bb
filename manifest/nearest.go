package manifest

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/agnivade/levenshtein"
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
		if d := levenshtein.ComputeDistance(name, v); d < bestDistance && d < len(v) {
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

// clip shortens text for an error line.
func clip(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	return s[:most] + "..."
}
