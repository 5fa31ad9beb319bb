package table

import (
	"slices"

	"ddiff/coordinator/report/aggregate"
	"ddiff/coordinator/report/selection"
)

// costHeadings are the headings of tables.
var costHeadings = [selection.CostKinds]string{"network", "backward", "operator", "autoencoder", "its backward"}

// costColumns are the indices of the kinds of work that have a column in a table: none if no row has a known cost, and those of
// an autoencoder only if a row uses one.
func costColumns(s aggregate.Summary) []int {
	var out []int
	for k, name := range selection.CostNames {
		if slices.ContainsFunc(s.Rows, func(r aggregate.Row) bool { return r.Cost[name].N > 0 && (k < 3 || r.Cost[name].Mean > 0) }) {
			out = append(out, k)
		}
	}
	return out
}
