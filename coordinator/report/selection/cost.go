package selection

import (
	"math"

	"ddiff/manifest"
)

// CostKinds is the number of kinds of work in a [manifest.Cost].
const CostKinds = 5

// CostNames are the columns of results.csv and the keys of costs in summary.json.
var CostNames = [CostKinds]string{"network", "network_backward", "operator", "autoencoder", "autoencoder_backward"}

// costOf returns a cost as figures by the index in [CostNames], which are undefined for the unknown one.
func costOf(c manifest.Cost) (out [CostKinds]float64) {
	for k, n := range []int{c.Network, c.NetworkBackward, c.Operator, c.Autoencoder, c.AutoencoderBackward} {
		out[k] = float64(n)
		if c == (manifest.Cost{}) {
			out[k] = math.NaN()
		}
	}
	return out
}
