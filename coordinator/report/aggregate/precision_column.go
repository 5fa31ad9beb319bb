package aggregate

import (
	"maps"
	"slices"
	"strings"
)

// PrecisionText is the text of a row in the column of precisions: those that its items used, or the one that its campaign
// fixes. Beside rows of campaigns that fix a precision, those that fix none say so.
func (r *Row) PrecisionText() string {
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
