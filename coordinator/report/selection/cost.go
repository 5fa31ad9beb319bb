package selection

import (
	"math"

	"ddiff/manifest"
)

// CostKinds is the number of kinds of work in a [manifest.Cost].
const CostKinds = 5

// CostNames are the columns of results.csv and the keys of [Row.Cost].
var CostNames = [CostKinds]string{"network", "network_backward", "operator", "autoencoder", "autoencoder_backward"}

// costCounts lists a cost by the index in costNames.
func costCounts(c manifest.Cost) [CostKinds]int {
	return [CostKinds]int{c.Network, c.NetworkBackward, c.Operator, c.Autoencoder, c.AutoencoderBackward}
}

// costOf returns a cost as figures, which are undefined for the unknown one.
func costOf(c manifest.Cost) (out [CostKinds]float64) {
	for k, n := range costCounts(c) {
		out[k] = float64(n)
		if c == (manifest.Cost{}) {
			out[k] = math.NaN()
		}
	}
	return out
}
