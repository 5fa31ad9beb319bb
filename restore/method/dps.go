package method

import (
	"math"

	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
	"ddiff/restore/prior"
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
func DPS() Method { return dps{} }

type dps struct{}

// The values of the parameter variance.
const (
	variancePosterior = "posterior"
	varianceBeta      = "beta"
)

func (dps) Info() Info {
	return Info{
		Name: "dps", About: "diffusion posterior sampling, with the gradient through the network",
		Citation: "H. Chung, J. Kim, M. T. Mccann, M. L. Klasky, J. C. Ye: Diffusion Posterior Sampling for General Noisy Inverse " +
			"Problems, ICLR 2023",
		Samples:   true,
		Undivided: needsGradient,
		Parameters: parameter.List{
			{Name: "scale", Max: largest, Default: 0.3, Doc: "step size ζ of the data term for 256×256 images; it scales with √(height·width)/256"},
			{Name: "variance", Choices: []string{variancePosterior, varianceBeta},
				Doc: "σ_t² of the reverse step: that of the posterior q(x_s | x_t, z), or β"},
		},
		Steps: 1000, Rows: presetRows("dps"),
		State: []Tensor{{Name: "x", Noise: true}},
		Draws: []Draw{{Name: "noise"}},
		Curves: []Curve{
			{Name: "data_norm", About: "‖y − A(z)‖ over the observed entries"},
			{Name: "guidance_norm", About: "‖ζ·∇_{x_t}‖y − A(z)‖₂‖"},
		},
	}
}

func (dps) Plan(s Settings, schedule prior.Schedule, image operator.Shape) ([]Step, error) {
	levels, err := Levels(schedule, s.Steps)
	var out []Step
	for _, l := range levels {
		beta := 1 - l.Alpha/l.Next
		variance := beta
		if s.Word("variance") == variancePosterior {
			variance *= (1 - l.Next) / (1 - l.Alpha)
		}
		if l.Next == 1 {
			variance = 0
		}
		out = append(out, Step{
			Time: l.Time,
			Scalars: map[string]float64{
				"scale":   s.Number("scale") * gammaScale(GradientNorm, image),
				"mean_z":  math.Sqrt(l.Next) * beta / (1 - l.Alpha),
				"mean_xt": math.Sqrt(l.Alpha/l.Next) * (1 - l.Next) / (1 - l.Alpha),
			},
			Std: map[string]float64{"noise": math.Sqrt(variance)},
		})
	}
	return out, err
}

func (dps) Step(b *Builder, _ Settings) Next {
	xt := b.State("x")
	z := b.Clean(xt)
	pull, norm := b.Pull(z, b.Planned("scale"), GradientNorm)
	guidance := b.Gradient(z, xt, pull)
	mean := b.Add(b.Mul(z, b.Planned("mean_z")), b.Mul(xt, b.Planned("mean_xt")))
	return Next{
		State:  map[string]onnx.Value{"x": b.Add(b.Add(mean, b.Draw("noise")), guidance)},
		Curves: map[string]onnx.Value{"data_norm": norm, "guidance_norm": b.Norm(guidance)},
	}
}
