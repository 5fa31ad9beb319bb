package tune

import (
	"ddiff/coordinator/report/statistic"
	"ddiff/manifest"
	"ddiff/restore/method"
)

// tunedCost has the mean counts of work for an image, see [manifest.Cost].
type tunedCost struct {
	Network             statistic.Estimate `json:"network,omitzero"`
	NetworkBackward     statistic.Estimate `json:"network_backward,omitzero"`
	Operator            statistic.Estimate `json:"operator,omitzero"`
	Autoencoder         statistic.Estimate `json:"autoencoder,omitzero"`
	AutoencoderBackward statistic.Estimate `json:"autoencoder_backward,omitzero"`
}

// spend adds the cost of a run.
func (i *tunedImage) spend(r *manifest.Result) {
	c := method.Cost(r.Cost)
	c.Network = r.Evaluations()
	i.Cost = manifest.Cost(method.Cost(i.Cost).Plus(c))
	i.seconds += r.Seconds
}

// estimateCost computes the means of the cost by over, which gives the mean of a figure of the images.
func (one *tuneTest) estimateCost(over func(get func(i tunedImage) *float64) statistic.Estimate) {
	count := func(get func(c manifest.Cost) int) statistic.Estimate {
		return over(func(i tunedImage) *float64 { return defined(float64(get(i.Cost))) })
	}
	one.Cost = tunedCost{
		Network:             count(func(c manifest.Cost) int { return c.Network }),
		NetworkBackward:     count(func(c manifest.Cost) int { return c.NetworkBackward }),
		Operator:            count(func(c manifest.Cost) int { return c.Operator }),
		Autoencoder:         count(func(c manifest.Cost) int { return c.Autoencoder }),
		AutoencoderBackward: count(func(c manifest.Cost) int { return c.AutoencoderBackward }),
	}
	one.seconds = over(func(i tunedImage) *float64 { return defined(i.seconds) })
}
