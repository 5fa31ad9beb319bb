package method

import (
	"math"

	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
	"ddiff/restore/prior"
)

// DiffPIR is denoising diffusion for plug-and-play image restoration: half-quadratic splitting in which the prior's
// proximal step is one evaluation of a diffusion model. From x_T ~ N(0, I), each step from time t to the next s is
//
//	z   = the prior's clean image of x_t, clipped to [−1, 1]
//	x   = z − γ_t·∇_z‖y − A(z)‖₂², with γ_t = σ̄_t²/(2λσ²) and σ̄_t² = (1−ᾱ_t)/ᾱ_t
//	ε̂   = (x_t − √ᾱ_t·x)/√(1−ᾱ_t)
//	x_s = √ᾱ_s·x + √(1−ᾱ_s)·(√(1−ζ)·ε̂ + √ζ·ε)
//
// and the answer is x after the last step. The gradient step replaces the exact solution of the data term, which exists
// for some linear operators only. It overshoots where σ̄_t is large; gamma_max bounds it, and 1/2 goes no further than the
// measurement for an operator of norm 1. It is DDiff-HQS with γ_t as above, σ_t = √(ζ·(1−ᾱ_s)) and no t0 (appendix
// "Relating DDiff and DiffPIR" of the DDiff paper).
func DiffPIR() Method { return diffPIR{} }

type diffPIR struct{}

// Info implements [Method].
func (diffPIR) Info() Info {
	return Info{
		Name: "diffpir", About: "plug-and-play restoration by half-quadratic splitting and a diffusion model",
		Citation: "Y. Zhu, K. Zhang, J. Liang, J. Cao, B. Wen, R. Timofte, L. Van Gool: Denoising Diffusion Models for " +
			"Plug-and-Play Image Restoration, CVPR 2023 Workshops",
		Parameters: parameter.List{
			{Name: "lambda", Max: largest, Open: true, Default: 7, Doc: "weight λ of the prior against the measurement"},
			{Name: "zeta", Max: 1, Default: 0.3, Doc: "share ζ of new noise in the noise of a step: 0 deterministic, 1 all new"},
			{Name: "noise_std", Min: 0.001, Max: 1, Default: 0.05, Unit: "units of y",
				Doc: "standard deviation σ of the measurement noise that the method assumes; the campaign's sigma unless it is set"},
			{Name: "gamma_max", Max: largest, Open: true, Default: 0.5, Doc: "upper bound of the step size γ_t"},
		},
		NoiseStd: "noise_std",
		Steps:    100, Rows: diffPIRRows(),
		State: []Tensor{{Name: "x", Noise: true}, {Name: "x_before"}, {Name: "z_before"}},
		Draws: []Draw{{Name: "noise"}},
		Curves: []Curve{
			{Name: "gamma", About: "step size γ_t", Scalar: "gamma"},
			{Name: "data_norm", About: "‖y − A(z)‖ over the observed entries"},
			{Name: "primal_norm", About: "‖x − z‖"},
			{Name: "delta_x", About: "change of x, at first from zero"},
			{Name: "delta_z", About: "change of z, at first from zero"},
		},
	}
}

// Plan implements [Method].
func (diffPIR) Plan(s Settings, schedule prior.Schedule, _ operator.Shape) ([]Step, error) {
	levels, err := Levels(schedule, s.Steps)
	if err != nil {
		return nil, err
	}
	var out []Step
	for _, l := range levels {
		sigma := s.Number("noise_std")
		gamma := (1 - l.Alpha) / l.Alpha / (2 * s.Number("lambda") * sigma * sigma)
		kept := math.Sqrt((1 - l.Next) * (1 - s.Number("zeta")) / (1 - l.Alpha)) // factor of x_t − √ᾱ_t·x
		out = append(out, Step{
			Time: l.Time,
			Scalars: map[string]float64{
				"gamma": min(gamma, s.Number("gamma_max")), "next_of_x": math.Sqrt(l.Next) - kept*math.Sqrt(l.Alpha), "next_of_xt": kept,
			},
			Std: map[string]float64{"noise": math.Sqrt((1 - l.Next) * s.Number("zeta"))},
		})
	}
	return out, nil
}

// Step implements [Method].
func (diffPIR) Step(b *Builder, _ Settings) (Next, error) {
	xt := b.State("x")
	z, err := b.Clean(xt)
	if err != nil {
		return Next{}, err
	}
	pull, dataNorm, err := b.Pull(z, b.Planned("gamma"), GradientSquared)
	if err != nil {
		return Next{}, err
	}
	x := b.Add(z, pull)
	next := b.Add(b.Add(b.Mul(x, b.Planned("next_of_x")), b.Mul(xt, b.Planned("next_of_xt"))), b.Draw("noise"))
	return Next{
		State: map[string]onnx.Value{"x": next, "x_before": x, "z_before": z},
		Curves: map[string]onnx.Value{
			"data_norm": dataNorm, "primal_norm": b.Norm(pull),
			"delta_x": b.Norm(b.Minus(x, b.State("x_before"))), "delta_z": b.Norm(b.Minus(z, b.State("z_before"))),
		},
	}, nil
}

// diffPIRRows are the rows of natural, chosen by the mean PSNR of three bundled photographs at 64×64, 50 steps and sigma
// 0.05. The operator of 4x super-resolution has the norm 1/4, so its largest step is 4² times larger.
func diffPIRRows() []Row {
	row := func(task string, lambda, zeta, gammaMax float64) Row {
		return Row{"natural", task, 100, map[string]parameter.Value{
			"lambda": parameter.Number(lambda), "zeta": parameter.Number(zeta), "gamma_max": parameter.Number(gammaMax),
		}, photographs()}
	}
	return append([]Row{
		row(operator.SuperResolution, 2, 0.3, 8),
		row(operator.InpaintBox, 1, 1, 0.5),
		row(operator.InpaintRandom, 1, 1, 0.5),
		row(operator.MotionDeblur, 1, 1, 0.5),
	}, diffPIRPublished()...)
}
