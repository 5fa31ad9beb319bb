package method

import (
	"math"

	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// PiGDM is pseudoinverse-guided diffusion: DDIM whose every step adds the gradient of log p(y | x_t), through the network. It takes N(z, r_t²·I) for x given
// x_t, with the prior's clean image z = x_0(x_t), not clipped, and r_t² = σ_t²/(1+σ_t²), σ_t² = (1−ᾱ_t)/ᾱ_t, as a prior N(0, I) gives it. From
// x_T ~ N(0, I), each step from time t to the next s is
//
//	d   = Aᵀ·(A·Aᵀ + σ_y²/r_t²)⁻¹·(y − A·z)
//	x_s = √ᾱ_s·z + c₂·ε_θ + c₁·ε + √ᾱ_s·√ᾱ_t·Jᵀ·d, with the Jacobian J of z in x_t
//	c₁  = η·√((1−ᾱ_s)/(1−ᾱ_t)·(1−ᾱ_t/ᾱ_s)), c₂ = √(1−ᾱ_s−c₁²)
//
// and the answer is x after the last step, which adds no noise. d is that of [Builder.Proximal] with ρ = σ_y²/r_t²; without noise it is A⁺·(y − A·z). The
// times are those of DDRM.
//
// The step is that of the code of the paper's first author for y without noise, NVlabs/RED-diff; d with noise is that of devzhk/InverseBench. The former begins
// with A⁺·y at x_T and noise, and puts y in the place of the observed pixels of z in inpainting, without a gradient there; the latter has η for the
// share of new noise, as DDNM does. Operators without a decomposition have conjugate gradients for d, nonlinear ones their Jacobian for A.
type piGDM struct{}

func (piGDM) Info() Info {
	return Info{
		About:     "pseudoinverse-guided diffusion, with the gradient through the network",
		Citation:  "J. Song, A. Vahdat, M. Mardani, J. Kautz: Pseudoinverse-Guided Diffusion Models for Inverse Problems, ICLR 2023",
		Samples:   true,
		Undivided: needsGradient,
		Parameters: parameter.List{
			{Name: "eta", Max: 1, Default: 1, Doc: "factor η of new noise in the noise of a step: 0 deterministic, 1 that of DDPM"},
			{Name: "noise_std", Min: 0.0001, Max: 1, Default: 0.05, Unit: "units of y",
				Doc: "standard deviation σ_y of the measurement noise that the method assumes; the campaign's sigma unless it is set"},
			{Name: "cg_steps", Min: 1, Max: 100, Integer: true, Default: 5,
				Doc: "iterations of conjugate gradients in the data term, for operators without a decomposition"},
		},
		NoiseStd: "noise_std",
		Steps:    100, Rows: presetRows("pigdm"),
		State: []Tensor{{Name: "x", Noise: true}},
		Draws: []Draw{{Name: "noise"}},
		Curves: []Curve{
			{Name: "data_norm", About: "‖y − A(z)‖ over the observed entries"},
			{Name: "guidance_norm", About: "‖√ᾱ_s·√ᾱ_t·Jᵀ·d‖"},
		},
	}
}

func (piGDM) Plan(s Settings, schedule Schedule, _ operator.Shape) ([]Step, error) {
	var out []Step
	for _, l := range stridedLevels(schedule, schedule.Steps()-1, s.Steps) {
		c1 := s.Number("eta") * math.Sqrt((1-l.Next)/(1-l.Alpha)*(1-l.Alpha/l.Next))
		sigma := s.Number("noise_std")
		out = append(out, Step{
			Time: l.Time,
			Scalars: map[string]float64{
				"rho": sigma * sigma / (1 - l.Alpha), "guidance": math.Sqrt(l.Next * l.Alpha), // r_t² is 1 − ᾱ_t
				"next": math.Sqrt(l.Next), "kept": math.Sqrt(max(0, 1-l.Next-c1*c1)),
			},
			Std: map[string]float64{"noise": c1},
		})
	}
	return out, nil
}

func (piGDM) Step(b *Builder, s Settings) Next {
	xt := b.State("x")
	z, noise := b.UnclippedAt(xt, b.Now())
	d, norm := b.Proximal(z, b.Planned("rho"), s.Number("noise_std"), int(s.Number("cg_steps")), 0)
	guidance := b.Mul(b.Gradient(z, xt, d), b.Planned("guidance"))
	next := b.Add(b.Mul(z, b.Planned("next")), b.Mul(noise, b.Planned("kept")))
	return Next{
		State:  map[string]onnx.Value{"x": b.Add(b.Add(next, b.Draw("noise")), guidance)},
		Curves: map[string]onnx.Value{"data_norm": norm, "guidance_norm": b.Norm(guidance)},
	}
}
