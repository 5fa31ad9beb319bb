package manifest

// Cost counts the work for one item. It does not depend on the batch or the worker. The zero Cost is unknown: results of earlier
// versions have none.
type Cost struct {
	// Network counts evaluations of the score network, NetworkBackward the backward passes through it.
	Network         int `json:"network"`
	NetworkBackward int `json:"network_backward"`
	// Operator counts calls of the measurement operator: A(x), and products with its Jacobian.
	Operator int `json:"operator"`
	// Autoencoder counts evaluations of encoder and decoder of a latent prior, AutoencoderBackward the backward passes
	// through them.
	Autoencoder         int `json:"autoencoder"`
	AutoencoderBackward int `json:"autoencoder_backward"`
}

// Evaluations returns the number of network evaluations of a result: its steps if the cost is unknown, as in results of
// earlier versions, whose methods make one per step.
func (r *Result) Evaluations() int {
	if r.Cost == (Cost{}) {
		return r.Steps
	}
	return r.Cost.Network
}
