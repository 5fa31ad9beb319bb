package method

import (
	"math"

	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// DPS is diffusion posterior sampling: ancestral sampling whose every step moves down the gradient of the data term through the
// network. From x_T ~ N(0, I), each step from time t to the next s, with β = 1 − ᾱ_t/ᾱ_s, is
//
//	z   = the prior's clean image of x_t, clipped to [−1, 1]
//	μ   = √ᾱ_s·β/(1−ᾱ_t)·z + √(ᾱ_t/ᾱ_s)·(1−ᾱ_s)/(1−ᾱ_t)·x_t
//	x_s = μ + σ_t·ε − ζ·∇_{x_t}‖y − A(z)‖₂
//
// and the answer is x after the last step, which adds no noise. The gradient is that of the norm: the paper writes the squared
// norm with the step size ζ/‖y − A(z)‖, which is the same up to a factor of 2. The code samples with a variance that the network has
// learned, between (1−ᾱ_s)/(1−ᾱ_t)·β and β; a prior of this program has none, and σ_t² is one of the two ends. For inpainting the
// code adds noise to the pixels that are not observed, and its norm contains them.
//
// AdamDPS, the parameter guidance, replaces ζ times the gradient g by rate/√(ᾱ_t/ᾱ_s) times the quotient of its moments over the steps, those of Adam:
// m̂/(√q̂ + 1e−8), with the averages m̂ of g and q̂ of g² for β₁ and β₂. g is then that of z before its clip, as in the code of its authors.
type dps struct{}

// The values of the parameter guidance.
const (
	guidanceGradient = "gradient"
	guidanceAdam     = "adam"
)

// The values of the parameter variance.
const (
	variancePosterior = "posterior"
	varianceBeta      = "beta"
)

func (dps) Info() Info {
	withAdam := []string{"guidance=" + guidanceAdam}
	return Info{
		About: "diffusion posterior sampling, with the gradient through the network",
		Citation: "H. Chung, J. Kim, M. T. Mccann, M. L. Klasky, J. C. Ye: Diffusion Posterior Sampling for General Noisy Inverse " +
			"Problems, ICLR 2023; guidance adam: C. Belardi, J. Lovelace, K. Q. Weinberger, C. P. Gomes: Adaptive Moments Are Surprisingly " +
			"Effective for Plug-and-Play Diffusion Sampling, ICLR 2026",
		Samples:   true,
		Undivided: needsGradient,
		Parameters: parameter.List{
			{Name: "guidance", Choices: []string{guidanceGradient, guidanceAdam},
				Doc: "step of the data term: along its gradient, or along the moments of Adam over the steps (AdamDPS)"},
			{Name: "rate", With: withAdam, Max: largest, Default: 0.03, Doc: "length of a step of AdamDPS per entry of the image"},
			{Name: "beta1", With: withAdam, Max: 0.9999, Default: 0.7, Doc: "share of the earlier gradients in their average"},
			{Name: "beta2", With: withAdam, Max: 0.9999, Default: 0.7, Doc: "share of the earlier squares of the gradients in their average"},
			{Name: "scale", With: []string{"guidance=" + guidanceGradient}, Max: largest, Default: 0.3,
				Doc: "step size ζ of the data term for 256×256 images; it scales with √(height·width)/256"},
			{Name: "variance", Choices: []string{variancePosterior, varianceBeta},
				Doc: "σ_t² of the reverse step: that of the posterior q(x_s | x_t, z), or β"},
		},
		Steps: 1000, Rows: presetRows("dps"),
		State: []Tensor{{Name: "x", Noise: true}, {Name: "mean"}, {Name: "square"}},
		Draws: []Draw{{Name: "noise"}},
		Curves: []Curve{
			{Name: "data_norm", About: "‖y − A(z)‖ over the observed entries"},
			{Name: "guidance_norm", About: "length of the step of the data term, as ‖ζ·∇_{x_t}‖y − A(z)‖₂‖"},
		},
	}
}

func (dps) Plan(s Settings, schedule Schedule, image operator.Shape) ([]Step, error) {
	levels, err := Levels(schedule, s.Steps)
	var out []Step
	for i, l := range levels {
		beta := 1 - l.Alpha/l.Next
		variance := beta
		if s.Word("variance") == variancePosterior {
			variance *= (1 - l.Next) / (1 - l.Alpha)
		}
		if l.Next == 1 {
			variance = 0
		}
		st := Step{
			Time: l.Time,
			Scalars: map[string]float64{
				"mean_z":  math.Sqrt(l.Next) * beta / (1 - l.Alpha),
				"mean_xt": math.Sqrt(l.Alpha/l.Next) * (1 - l.Next) / (1 - l.Alpha),
			},
			Std: map[string]float64{"noise": math.Sqrt(variance)},
		}
		if s.Word("guidance") == guidanceAdam {
			k := float64(i + 1)
			st.Scalars["scale"] = 1
			st.Scalars["rate"] = s.Number("rate") * math.Sqrt(l.Next/l.Alpha) / (1 - math.Pow(s.Number("beta1"), k))
			st.Scalars["unbiased"] = 1 / (1 - math.Pow(s.Number("beta2"), k))
		} else {
			st.Scalars["scale"] = s.Number("scale") * gammaScale(GradientNorm, image)
		}
		out = append(out, st)
	}
	return out, err
}

func (dps) Step(b *Builder, s Settings) Next {
	xt, mean, square := b.State("x"), b.State("mean"), b.State("square")
	moments := s.Word("guidance") == guidanceAdam
	at := b.unclipped(xt, b.Now())
	z := b.Clip(at, -1, 1)
	if !moments {
		at = z
	}
	pull, norm := b.Pull(at, b.Planned("scale"), GradientNorm)
	guidance := b.Gradient(at, xt, pull)
	if moments {
		share := func(name string) (kept, rest float32) { return float32(s.Number(name)), float32(1 - s.Number(name)) }
		kept, rest := share("beta1")
		mean = b.average(mean, guidance, kept, rest)
		kept, rest = share("beta2")
		square = b.average(square, b.Mul(guidance, guidance), kept, rest)
		root := b.Add(b.Sqrt(b.Mul(square, b.Planned("unbiased"))), b.Scalar(adamEpsilon))
		guidance = b.Mul(b.Div(mean, root), b.Planned("rate"))
	}
	ancestral := b.Add(b.Mul(z, b.Planned("mean_z")), b.Mul(xt, b.Planned("mean_xt")))
	return Next{
		State: map[string]onnx.Value{
			"x": b.Add(b.Add(ancestral, b.Draw("noise")), guidance), "mean": mean, "square": square,
		},
		Curves: map[string]onnx.Value{"data_norm": norm, "guidance_norm": b.Norm(guidance)},
	}
}
