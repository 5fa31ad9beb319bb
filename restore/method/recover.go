package method

import "ddiff/restore/parameter"

// The rules for saturated entries of A(v), whose gradient is 0.
const (
	recoverNever  = "never"
	recoverBeyond = "beyond_noise" // it passes where the residual leads back into the range by more than recoverLimit·noise_std
)

// beyondNoise is the choice of recover that needs the noise level.
const beyondNoise = "recover=" + recoverBeyond

// recoverLimit is a distance that noise hardly ever reaches: at correctly saturated entries the gradient stays 0.
const recoverLimit = 4

// recovery is the parameter of the gradient at saturated entries.
func recovery() parameter.List {
	return parameter.List{{Name: "recover", Choices: []string{recoverNever, recoverBeyond},
		Doc: "gradient at saturated entries of hdr: 0, or passed where the residual leads back by more than 4·noise_std"}}
}

// recoverBy returns the limit of [Builder.PullBack].
func recoverBy(s Settings) float64 {
	if s.Word("recover") == recoverBeyond {
		return recoverLimit * s.Number("noise_std")
	}
	return 0
}

// assumedNoise is the parameter of the measurement's noise, which exists with one of the choices alone, or always.
func assumedNoise(with ...string) parameter.Parameter {
	return parameter.Parameter{Name: "noise_std", With: with, Min: 0.001, Max: 1, Default: 0.05,
		Doc: "standard deviation of the measurement noise; default: the campaign's sigma"}
}
