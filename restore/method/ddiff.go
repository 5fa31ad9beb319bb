package method

import (
	"math"

	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
	"ddiff/restore/prior"
)

// DDiff is Dual Ascent Diffusion (Algorithm 1): linearised ADMM in which the prior's proximal step is one evaluation
// of a diffusion model. From x_T ~ N(0, I) and u = 0, each step from time t to the next s is
//
//	z   = (x_t − √(1−ᾱ_t)·ε_θ(x_t, t))/√ᾱ_t, clipped to [−1, 1]
//	v   = z − u
//	x   = v − γ_t·∇, with ∇ = g/‖g‖ (unit), g/(2·‖y − A(v)‖) (norm) or g (squared), and g = ∇_v‖y − A(v)‖²
//	ε̂   = (x_t − √ᾱ_t·x)/√(1−ᾱ_t)
//	x_s = √ᾱ_s·(x + u) + √(1−ᾱ_s−σ_t²)·ε̂ + σ_t·ε, with ε = 0 for t ≤ t₀
//	u   = u + x − z
//
// and the answer is x_s after the last step, where ᾱ_s = 1: x + u, or x with the parameter answer. With the answer x_t the last step
// changes nothing. The gradient is per image over the observed entries. The released code of the authors (SoniaMinseoKim/ddiff-cvpr at ae3ce1f,
// ddiff_sample.py) has the unit gradient and the answer x_t, and so have the presets ffhq and imagenet.
//
// With the data step proximal, which is not the paper's, the steps differ in
//
//	x   = argmin_x ‖y − A(x)‖² + ρ_t·‖x − v‖², with ρ_t = λ·(σ/2)²·ᾱ_t/(1−ᾱ_t)
//	u   = δ·(u + x − z), with δ = dual
//
// and the times begin at t_start, with x_t = √ᾱ_t·x_y + √(1−ᾱ_t)·ε and the image x_y of [Builder.Rough] or [Builder.Filled], because at earlier times
// the measurement alone says more than the prior. With the sigma_rule none, x_s = √ᾱ_s·(x + u), and x_t begins without noise. See docs/methods/ddiff.md.
func DDiff() Method {
	return ddiff{name: "ddiff", about: "Dual Ascent Diffusion", dual: true, noisy: true}
}

// DDiffHQS is DDiff without the dual variable.
func DDiffHQS() Method {
	return ddiff{name: "ddiff_hqs", about: "DDiff without the dual variable", noisy: true}
}

// DiffPnPADMM is DDiff without the reverse diffusion step: x_s = x, and the prior is evaluated at x + u.
func DiffPnPADMM() Method {
	return ddiff{name: "diff_pnp_admm", about: "DDiff without noise", dual: true}
}

// DiffPnPHQS is DDiff without the dual variable and the reverse diffusion step.
func DiffPnPHQS() Method {
	return ddiff{name: "diff_pnp_hqs", about: "DDiff without noise and dual variable"}
}

// ddiff is DDiff or one of its ablations (the paper's appendix "Method Variants").
type ddiff struct {
	name, about string
	// dual: the method has the dual variable u.
	dual bool
	// noisy: the method takes the reverse diffusion step with its noise.
	noisy bool
}

// The rules for σ_t.
const (
	sigmaDDPM = "ddpm" // √((1−ᾱ_s)/(1−ᾱ_t))·√(1−ᾱ_t/ᾱ_s)
	sigmaFull = "full" // √(1−ᾱ_s)
	sigmaNone = "none" // 0, and ε̂ has the weight 0: the data step is followed by no noise at all
)

// dataProximal is the data term's proximal operator in place of a step along its gradient, dataGradient.
const dataProximal = "proximal"

// The images with which a run begins.
const (
	startRough  = "rough"
	startFilled = "filled"
)

// The answers.
const (
	answerSum    = "x_plus_u"
	answerPrimal = "x"
	answerState  = "x_t"
)

// The rules for saturated entries of A(v), whose gradient is 0.
const (
	recoverNever  = "never"
	recoverBeyond = "beyond_noise" // it passes where the residual leads back into the range by more than recoverLimit·noise_std
)

// recoverLimit is a distance that noise hardly ever reaches: at correctly saturated entries the gradient stays 0.
const recoverLimit = 4

// largest bounds step sizes and their factors, far above any published value.
const largest = 1e6

const ddiffCitation = "M. Kim, A. Levy, G. Wetzstein: Dual Ascent Diffusion for Inverse Problems, CVPR 2026"

// ddiffParameters are the parameters of DDiff, its ablations and LatentDDiff.
func ddiffParameters() parameter.List {
	return parameter.List{
		{Name: "gamma0", Unless: "data_step=" + dataProximal, Max: largest, Open: true, Default: 8,
			Doc: "step size γ₀ for 256×256 images; with gradient norm or unit it scales with √(height·width)/256"},
		{Name: "a", Unless: "data_step=" + dataProximal, Max: largest, Default: 3.3, Doc: "factor of gamma0 at times above t_gamma"},
		{Name: "b", Unless: "data_step=" + dataProximal, Max: largest, Default: 1, Doc: "factor of gamma0 from t_gamma down"},
		{Name: "t_gamma", Unless: "data_step=" + dataProximal, Time: true, Unit: "time index", Default: 90, Doc: "time at which the factor of gamma0 changes"},
		{Name: "t0", Unless: "sigma_rule=" + sigmaNone, Time: true, Unit: "time index", Default: 300, Off: "no noise at any step",
			Doc: "no noise is added from this time down; none: no noise at any step"},
		{Name: "sigma_rule", Choices: []string{sigmaDDPM, sigmaFull, sigmaNone},
			Doc: "noise of the reverse step: the posterior's (ddpm), all of the noise level (full), or neither new noise nor the estimate of the old one (none)"},
		{Name: "gradient", Unless: "data_step=" + dataProximal, Choices: []string{GradientNorm, GradientSquared, GradientUnit},
			Doc: "gradient of ‖y − A(x)‖ (norm), of its square (squared), or either one divided by its norm (unit)"},
	}
}

func (m ddiff) Info() Info {
	i := Info{
		Name: m.name, About: m.about,
		Citation: ddiffCitation,
		Parameters: append(ddiffParameters(),
			parameter.Parameter{Name: "answer", Added: true, Choices: []string{answerSum, answerPrimal, answerState},
				Doc: "the result: x + u after the last step as in the paper's text, x, or x_t, the state before the last step as in the authors' code"},
			parameter.Parameter{Name: "recover", Added: true, Choices: []string{recoverNever, recoverBeyond},
				Doc: "gradient at saturated entries of hdr: 0, or passed where the residual leads back by more than 4·noise_std"},
			parameter.Parameter{Name: "data_step", Added: true, Choices: []string{dataGradient, dataProximal},
				Doc: "a step along the gradient, or the exact minimum of data term and distance (proximal), which ignores gamma0, a, b, t_gamma and gradient"},
			parameter.Parameter{Name: "noise_std", For: []string{"recover", "data_step"}, Min: 0.001, Max: 1, Default: 0.05,
				Doc: "standard deviation of the measurement noise, of recover and proximal; default: the campaign's sigma"},
			parameter.Parameter{Name: "lambda", For: []string{"data_step"}, Max: largest, Open: true, Default: 2,
				Doc: "weight λ of the prior against the measurement in the proximal data step"},
			parameter.Parameter{Name: "t_start", For: []string{"data_step"}, Unless: "start_noise", Time: true, Unit: "time index", Default: 500, Off: "from the last time",
				Doc: "first time of the run with the proximal data step, steps − 1 if that is later; it begins with an image made from y"},
			parameter.Parameter{Name: "start_noise", Added: true, For: []string{"data_step"}, Max: 1000,
				Doc: "first time of the run as a factor of the measurement's noise, noise_std: the prior's noise level is that factor times as large; 0: t_start"},
			parameter.Parameter{Name: "start", Added: true, For: []string{"data_step"}, Choices: []string{startRough, startFilled},
				Doc: "image that the run with the proximal data step begins with: y or A⁺·y (rough), or with lost pixels filled from their neighbours"},
			parameter.Parameter{Name: "cg_steps", For: []string{"data_step"}, Min: 1, Max: 100, Integer: true, Default: 5,
				Doc: "iterations of conjugate gradients in the proximal data step of operators without a decomposition"},
			parameter.Parameter{Name: "dual", For: []string{"data_step"}, Max: 1,
				Doc: "factor of the dual variable after a step with the proximal data step: 1 keeps it, 0 is none"},
			Mirror(),
		),
		NoiseStd: "noise_std",
		Steps:    100, Rows: presetRows("ddiff"),
		State: []Tensor{{Name: "x", Noise: true}, {Name: "x_before"}, {Name: "z_before"}},
		Curves: []Curve{
			{Name: "gamma", About: "step size γ_t", Scalar: "gamma"},
			{Name: "data_norm", About: "‖y − A(z)‖ over the observed entries"},
			{Name: "primal_norm", About: "‖x − z‖"},
			{Name: "dual_norm", About: "‖u‖ after the step"},
			{Name: "delta_x", About: "change of x, at first from zero"},
			{Name: "delta_z", About: "change of z, at first from zero"},
			{Name: "delta_u", About: "change of u"},
		},
	}
	if m.dual {
		i.State = append(i.State, Tensor{Name: "u"})
	}
	if m.noisy {
		i.Draws = []Draw{{Name: "noise"}}
	}
	return i
}

func (m ddiff) Plan(s Settings, schedule prior.Schedule, image operator.Shape) ([]Step, error) {
	levels, err := Levels(schedule, s.Steps)
	proximal := s.Word("data_step") == dataProximal
	if err == nil && proximal {
		start := int(s.Number("t_start"))
		if factor := s.Number("start_noise"); factor > 0 {
			start = nearestTime(schedule, factor*s.Number("noise_std"), schedule.Steps())
		}
		levels, err = levelsFrom(schedule, start, s.Steps)
	}
	if err != nil {
		return nil, err
	}
	var out []Step
	for i, l := range levels {
		factor := s.Number("b")
		if float64(l.Time) > s.Number("t_gamma") {
			factor = s.Number("a")
		}
		gamma := s.Number("gamma0") * factor * gammaScale(s.Word("gradient"), image)
		st := Step{Time: l.Time, Scalars: map[string]float64{"gamma": gamma}}
		if proximal {
			st.Scalars["rho"] = proximalWeight(s.Number("lambda"), s.Number("noise_std"), l)
			st.Scalars["start_of_x"], st.Scalars["start_of_y"] = 1, 0
			if i == 0 {
				st.Scalars["start_of_x"], st.Scalars["start_of_y"] = math.Sqrt(1-l.Alpha), math.Sqrt(l.Alpha)
				if !m.noisy || s.Word("sigma_rule") == sigmaNone {
					st.Scalars["start_of_x"] = 0
				}
			}
		}
		if m.noisy {
			sigma, k := reverseStep(s.Word("sigma_rule"), l)
			a, b := math.Sqrt(l.Alpha), math.Sqrt(1-l.Alpha)
			st.Scalars["next_of_x"] = math.Sqrt(l.Next) - k*a/b
			st.Scalars["next_of_u"] = math.Sqrt(l.Next)
			st.Scalars["next_of_xt"] = k / b
			if float64(l.Time) > s.Number("t0") {
				st.Std = map[string]float64{"noise": sigma}
			}
			if i == len(levels)-1 {
				switch s.Word("answer") {
				case answerPrimal:
					st.Scalars["next_of_u"] = 0
				case answerState:
					st.Scalars["next_of_x"], st.Scalars["next_of_u"], st.Scalars["next_of_xt"], st.Std = 0, 0, 1, nil
				}
			}
		}
		out = append(out, st)
	}
	return out, nil
}

// gammaScale scales a step size that is stated for 256×256 images: the norm of a residual and that of a step grow with the number of pixels.
func gammaScale(gradient string, image operator.Shape) float64 {
	if gradient != GradientSquared {
		return math.Sqrt(float64(image.Height*image.Width)) / 256
	}
	return 1
}

// reverseStep returns σ_t of the reverse step and the weight of ε̂.
func reverseStep(rule string, l Level) (sigma, kept float64) {
	switch rule {
	case sigmaNone:
		return 0, 0
	case sigmaFull:
		sigma = math.Sqrt(1 - l.Next)
	default:
		sigma = math.Sqrt((1-l.Next)/(1-l.Alpha)) * math.Sqrt(1-l.Alpha/l.Next)
	}
	return sigma, math.Sqrt(max(0, 1-l.Next-sigma*sigma))
}

// proximalWeight is ρ_t for the noise σ of y. As DiffPIR's, it is that of images in [0, 1], where σ is half as large.
func proximalWeight(lambda, sigma float64, l Level) float64 {
	return max(lambda*sigma*sigma/4*l.Alpha/(1-l.Alpha), 1e-30)
}

func (m ddiff) Step(b *Builder, s Settings) Next {
	proximal := s.Word("data_step") == dataProximal
	dual := m.dual && (!proximal || s.Number("dual") > 0) // else u is 0
	x0 := b.State("x")                                    // x_t
	if proximal {
		begin := b.Rough
		if s.Word("start") == startFilled {
			begin = b.Filled
		}
		rough := begin()
		x0 = b.Add(b.Mul(x0, b.Planned("start_of_x")), b.Mul(rough, b.Planned("start_of_y")))
	}
	xt := x0
	if dual && !m.noisy {
		xt = b.Add(x0, b.State("u"))
	}
	z := b.Clean(xt)
	v := z
	if dual {
		v = b.Minus(z, b.State("u"))
	}
	limit := 0.0 // recoverNever
	if s.Word("recover") == recoverBeyond {
		limit = recoverLimit * s.Number("noise_std")
	}
	var pull, dataNorm onnx.Value
	if proximal {
		pull, dataNorm = b.Proximal(v, b.Planned("rho"), s.Number("noise_std"), int(s.Number("cg_steps")), limit)
	} else {
		pull, dataNorm = b.PullBack(v, b.Planned("gamma"), s.Word("gradient"), limit)
	}
	x := b.Add(v, pull)
	if dual {
		// The curve is that of z; without a dual variable v is z.
		dataNorm = b.Norm(b.Residual(z))
	}

	next := x
	if m.noisy {
		next = b.Add(b.Mul(x, b.Planned("next_of_x")), b.Mul(x0, b.Planned("next_of_xt")))
		if dual {
			next = b.Add(next, b.Mul(b.State("u"), b.Planned("next_of_u")))
		}
		next = b.Add(next, b.Draw("noise"))
	}
	out := Next{
		State: map[string]onnx.Value{"x": next, "x_before": x, "z_before": z},
		Curves: map[string]onnx.Value{
			"data_norm":   dataNorm,
			"primal_norm": b.Norm(b.Minus(x, z)),
			"delta_x":     b.Norm(b.Minus(x, b.State("x_before"))),
			"delta_z":     b.Norm(b.Minus(z, b.State("z_before"))),
			"dual_norm":   b.Zeros(),
			"delta_u":     b.Zeros(),
		},
	}
	switch {
	case dual:
		u := pull // u + x − z = x − v
		if proximal {
			u = b.Mul(u, b.Scalar(float32(s.Number("dual"))))
		}
		out.State["u"], out.Curves["dual_norm"] = u, b.Norm(u)
		out.Curves["delta_u"] = b.Norm(b.Minus(u, b.State("u")))
	case m.dual:
		out.State["u"] = b.State("u")
	}
	return out
}
