package method

import (
	"math"
	"slices"

	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// DDiff is Dual Ascent Diffusion: ADMM in which the prior's proximal step is one evaluation of a diffusion model. The parameter data_step names the
// step on the data term: that of the paper, along its gradient, or its exact minimum, see [exact].
//
// The paper's (Algorithm 1) is linearised ADMM. From x_T ~ N(0, I) and u = 0, each step from time t to the next s is
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
// ddiff_sample.py) has the unit gradient and the answer x_t, and so have the presets ffhq and imagenet. See docs/methods/ddiff.md.
//
// The ablations (the paper's appendix "Method Variants") have the paper's step: ddiff_hqs has no dual variable, diff_pnp_admm no reverse diffusion step (x_s = x, and the
// prior is evaluated at x + u), diff_pnp_hqs neither.
type ddiff struct {
	about string
	// dual: the method has the dual variable u.
	dual bool
	// noisy: the method takes the reverse diffusion step with its noise.
	noisy bool
	// exact: the method has the choice of the exact data step.
	exact bool
}

// The steps on the data term.
const (
	dataGradient = "gradient"
	dataExact    = "exact"
)

// The rules for σ_t.
const (
	sigmaDDPM = "ddpm" // √((1−ᾱ_s)/(1−ᾱ_t))·√(1−ᾱ_t/ᾱ_s)
	sigmaFull = "full" // √(1−ᾱ_s)
)

// The answers.
const (
	answerSum    = "x_plus_u"
	answerPrimal = "x"
	answerState  = "x_t"
)

// largest bounds step sizes and their factors, far above any published value.
const largest = 1e6

const ddiffCitation = "M. Kim, A. Levy, G. Wetzstein: Dual Ascent Diffusion for Inverse Problems, CVPR 2026"

// stepSize are the parameters of the step along the gradient, of DDiff, its ablations and LatentDDiff.
func stepSize() parameter.List {
	return parameter.List{
		{Name: "gamma0", Schedule: true, Max: largest, Open: true, Default: 8,
			Doc: "step size γ₀ for 256×256 images; with gradient norm or unit it scales with √(height·width)/256"},
		{Name: "a", Max: largest, Default: 3.3, Doc: "factor of gamma0 at times above t_gamma"},
		{Name: "b", Max: largest, Default: 1, Doc: "factor of gamma0 from t_gamma down"},
		{Name: "t_gamma", Time: true, Unit: "time index", Default: 90, Doc: "time at which the factor of gamma0 changes"},
		{Name: "gradient", Choices: []string{GradientNorm, GradientSquared, GradientUnit},
			Doc: "gradient of ‖y − A(x)‖ (norm), of its square (squared), or either one divided by its norm (unit)"},
	}
}

// reverseNoise are the parameters of the reverse diffusion step, of DDiff, DDiff-HQS and LatentDDiff.
func reverseNoise() parameter.List {
	return parameter.List{
		{Name: "t0", Time: true, Unit: "time index", Default: 300, Off: "no noise at any step",
			Doc: "no noise is added from this time down; none: no noise at any step"},
		{Name: "sigma_rule", Choices: []string{sigmaDDPM, sigmaFull},
			Doc: "noise of the reverse step: the posterior's (ddpm), or all of the noise level (full)"},
	}
}

func (m ddiff) parameters() parameter.List {
	paper := stepSize()
	if m.noisy {
		paper = append(append(paper, reverseNoise()...), parameter.Parameter{Name: "answer", Choices: []string{answerSum, answerPrimal, answerState},
			Doc: "the result: x + u after the last step as in the paper's text, x, or x_t, the state before the last step as in the authors' code"})
	}
	if !m.exact {
		return slices.Concat(paper, recovery(), parameter.List{assumedNoise(beyondNoise), Mirror()})
	}
	return slices.Concat(
		parameter.List{{Name: "data_step", Choices: []string{dataGradient, dataExact},
			Doc: "step on the data term: along its gradient, as in the paper, or its exact minimum, with a scaled dual variable"}},
		only("data_step="+dataGradient, paper), only("data_step="+dataExact, exactParameters()),
		recovery(), parameter.List{assumedNoise(beyondNoise, "data_step="+dataExact), Mirror()},
	)
}

// only returns parameters that exist with a choice alone, or as a choice among them says.
func only(choice string, list parameter.List) parameter.List {
	for i := range list {
		if len(list[i].With) == 0 {
			list[i].With = []string{choice}
		}
	}
	return list
}

func (m ddiff) Info() Info {
	i := Info{
		About: m.about, Citation: ddiffCitation,
		Parameters: m.parameters(),
		NoiseStd:   "noise_std",
		Steps:      100, Rows: presetRows("ddiff"),
		State: []Tensor{{Name: "x", Noise: true}},
		Curves: []Curve{
			{Name: "gamma", About: "step size γ_t of the step along the gradient", Scalar: "gamma"},
			{Name: "rho", About: "weight ρ_t of the prior in the exact data step", Scalar: "rho"},
			{Name: "data_norm", About: "‖y − A(z)‖ over the observed entries"},
			{Name: "primal_norm", About: "‖x − z‖, the change of u"},
		},
	}
	if !m.exact {
		i.Rows = paperRows(i.Parameters)
		i.Curves = slices.Delete(i.Curves, 1, 2)
	}
	if m.dual {
		i.State = append(i.State, Tensor{Name: "u"})
		i.Curves = append(i.Curves, Curve{Name: "dual_norm", About: "‖u‖ after the step, before the exact step scales it"})
	}
	if m.noisy {
		i.Draws = []Draw{{Name: "noise"}}
	}
	return i
}

// paperRows are the rows of ddiff for its ablations, with their parameters: those of gradient are natural's, too.
func paperRows(have parameter.List) []Row {
	var out []Row
	for _, r := range presetRows("ddiff") {
		if r.Preset == "natural" {
			continue
		}
		values := map[string]parameter.Value{}
		for name, v := range r.Values {
			if _, ok := have.Find(name); ok {
				values[name] = v
			}
		}
		r.Values = values
		out = append(out, r)
		if r.Preset == "gradient" {
			r.Preset = "natural"
			out = append(out, r)
		}
	}
	return out
}

func (m ddiff) Plan(s Settings, schedule Schedule, image operator.Shape) ([]Step, error) {
	if s.Word("data_step") == dataExact {
		return exactPlan(s, schedule)
	}
	levels, err := Levels(schedule, s.Steps)
	if err != nil {
		return nil, err
	}
	var out []Step
	for i, l := range levels {
		factor := s.Number("b")
		if float64(l.Time) > s.Number("t_gamma") {
			factor = s.Number("a")
		}
		gamma := s.At("gamma0", i) * factor * gammaScale(s.Word("gradient"), image)
		st := Step{Time: l.Time, Scalars: map[string]float64{"gamma": gamma}}
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
	if rule == sigmaFull {
		sigma = math.Sqrt(1 - l.Next)
	} else {
		sigma = math.Sqrt((1-l.Next)/(1-l.Alpha)) * math.Sqrt(1-l.Alpha/l.Next)
	}
	return sigma, math.Sqrt(max(0, 1-l.Next-sigma*sigma))
}

func (m ddiff) Step(b *Builder, s Settings) Next {
	if s.Word("data_step") == dataExact {
		return exactStep(b, s)
	}
	xt := b.State("x")
	at := xt
	if m.dual && !m.noisy {
		at = b.Add(xt, b.State("u"))
	}
	z := b.Clean(at)
	v := z
	if m.dual {
		v = b.Minus(z, b.State("u"))
	}
	pull, dataNorm := b.PullBack(v, b.Planned("gamma"), s.Word("gradient"), recoverBy(s))
	x := b.Add(v, pull)
	next := x
	if m.noisy {
		next = b.Add(b.Mul(x, b.Planned("next_of_x")), b.Mul(xt, b.Planned("next_of_xt")))
		if m.dual {
			next = b.Add(next, b.Mul(b.State("u"), b.Planned("next_of_u")))
		}
		next = b.Add(next, b.Draw("noise"))
	}
	out := Next{
		State:  map[string]onnx.Value{"x": next},
		Curves: map[string]onnx.Value{"data_norm": dataNorm, "primal_norm": b.Norm(b.Minus(x, z))},
	}
	if m.dual {
		out.State["u"], out.Curves["dual_norm"] = pull, b.Norm(pull) // u + x − z = x − v
		out.Curves["data_norm"] = b.Norm(b.Residual(z))              // that of PullBack is v's
	}
	return out
}
