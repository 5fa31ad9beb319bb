package report

import (
	"math"
	"slices"
	"strconv"

	"ddiff/manifest"
)

// costKinds is the number of kinds of work in a [manifest.Cost].
const costKinds = 5

// costNames are the columns of results.csv and the keys of [Row.Cost].
var costNames = [costKinds]string{"network", "network_backward", "operator", "autoencoder", "autoencoder_backward"}

// costHeadings are the headings of tables.
var costHeadings = [costKinds]string{"network", "backward", "operator", "autoencoder", "its backward"}

// costCounts lists a cost by the index in costNames.
func costCounts(c manifest.Cost) [costKinds]int {
	return [costKinds]int{c.Network, c.NetworkBackward, c.Operator, c.Autoencoder, c.AutoencoderBackward}
}

// costOf returns a cost as figures, which are undefined for the unknown one.
func costOf(c manifest.Cost) (out [costKinds]float64) {
	for k, n := range costCounts(c) {
		out[k] = float64(n)
		if c == (manifest.Cost{}) {
			out[k] = math.NaN()
		}
	}
	return out
}

// costText returns a count of a result's cost, empty for an unknown one.
func costText(v float64) string {
	if !defined(v) {
		return ""
	}
	return strconv.Itoa(int(v))
}

// costColumns are the indices of the kinds of work that have a column in a table: none if no row has a known cost, and those of
// an autoencoder only if a row uses one.
func costColumns(s Summary) []int {
	var out []int
	for k, name := range costNames {
		if slices.ContainsFunc(s.Rows, func(r Row) bool { return r.Cost[name].N > 0 && (k < 3 || r.Cost[name].Mean > 0) }) {
			out = append(out, k)
		}
	}
	return out
}

// costNote explains the columns of the cost, if the table has them.
func costNote(s Summary) []string {
	if len(costColumns(s)) == 0 {
		return nil
	}
	return []string{"Per image: network counts evaluations of the prior's network, backward the backward passes through it, operator " +
		"the calls of A and of its Jacobian."}
}
