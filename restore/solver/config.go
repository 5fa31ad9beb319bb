package solver

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// ErrConfig: a setting is unknown or out of its range; the message names it.
var ErrConfig = errors.New("solver setting")

// Method is DDiff or one of its ablations (the paper's appendix "Method Variants").
type Method string

// The methods.
const (
	DDiff       Method = "ddiff"         // with noise, with the dual variable
	DDiffHQS    Method = "ddiff_hqs"     // with noise, without the dual variable
	DiffPnPADMM Method = "diff_pnp_admm" // without noise, with the dual variable
	DiffPnPHQS  Method = "diff_pnp_hqs"  // without either
)

// Methods lists them in the order of the paper's table.
func Methods() []Method { return []Method{DDiff, DDiffHQS, DiffPnPADMM, DiffPnPHQS} }

// dual: the method has a dual variable.
func (m Method) dual() bool { return m == DDiff || m == DiffPnPADMM }

// renoised: the method goes through the reverse diffusion step.
func (m Method) renoised() bool { return m == DDiff || m == DDiffHQS }

// The rules for σ_t.
const (
	SigmaDDPM = "ddpm" // √((1−ᾱ_s)/(1−ᾱ_t))·√(1−ᾱ_t/ᾱ_s)
	SigmaFull = "full" // √(1−ᾱ_s)
)

// The gradients of the data term.
const (
	GradientNorm    = "norm"    // ∇‖y − A(v)‖₂, scaled with the image size
	GradientSquared = "squared" // ∇‖y − A(v)‖₂²
)

// Config holds the algorithm's settings. Its JSON form is part of an item's identity.
type Config struct {
	Method Method `json:"method"`
	// Steps is the number of network evaluations, 2..T.
	Steps int `json:"steps"`
	// Gamma0 is γ₀ for 256×256 images; with the norm gradient the step size is multiplied
	// by √(H·W)/256, because a norm grows with the number of pixels.
	Gamma0 float64 `json:"gamma0"`
	// A and B are the factors of γ₀ above TGamma and from TGamma down.
	A      float64 `json:"a"`
	B      float64 `json:"b"`
	TGamma int     `json:"t_gamma"`
	// T0: no noise is added from time T0 down. TGamma and T0 are indices of the prior's
	// full schedule, however many steps are made.
	T0 int `json:"t0"`
	// SigmaRule is "ddpm" or "full".
	SigmaRule string `json:"sigma_rule"`
	// Gradient is "norm" or "squared".
	Gradient string `json:"gradient"`
}

// Validate names the first setting that is wrong, with ErrConfig.
func (c Config) Validate() error {
	bad := func(field string, value any, want string) error {
		return fmt.Errorf("%w %s: %v %s", ErrConfig, field, value, want)
	}
	finite := func(x float64) bool { return x >= 0 && !math.IsInf(x, 0) }
	switch {
	case !slices.Contains(Methods(), c.Method):
		return bad("method", c.Method, fmt.Sprintf("is none of %v", Methods()))
	case c.Steps < 2:
		return bad("steps", c.Steps, "is below 2")
	case !finite(c.Gamma0):
		return bad("gamma0", c.Gamma0, "is not a finite number of at least 0")
	case !finite(c.A):
		return bad("a", c.A, "is not a finite number of at least 0")
	case !finite(c.B):
		return bad("b", c.B, "is not a finite number of at least 0")
	case c.TGamma < 0:
		return bad("t_gamma", c.TGamma, "is negative")
	case c.T0 < 0:
		return bad("t0", c.T0, "is negative")
	case c.SigmaRule != SigmaDDPM && c.SigmaRule != SigmaFull:
		return bad("sigma_rule", c.SigmaRule, "is none of ddpm, full")
	case c.Gradient != GradientNorm && c.Gradient != GradientSquared:
		return bad("gradient", c.Gradient, "is none of norm, squared")
	}
	return nil
}
