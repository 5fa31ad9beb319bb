package method

import (
	"math"

	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// ReSample solves the data term by optimisation at some steps of DDIM, and returns to the noise level by a random draw around the
// solution. From z_T ~ N(0, I), each step from time t to the next s is
//
//	z̃ = the prior's clean latent of z_t,  ε̂ = ε_θ(z_t, t)
//	e  = (z_t − (1−ᾱ_t)·ε̂)/√ᾱ_t, or z̃
//	z' = √ᾱ_s·z̃ + √(1−ᾱ_s)·ε̂ − guidance·ᾱ_t·∇_{z_t}‖y − A(D(e))‖
//
// and z_s = z', except at every interval-th step after the first third. There, a few steps of DDIM continue from z', whose last e
// is ê. The middle third minimises ‖y − A(x)‖² from x = D(ê) and has ẑ = E(x); the last third minimises ‖y − A(D(ẑ))‖² from
// ẑ = ê; both by AdamW. Then, with κ = resample_scale·(1−ᾱ_s)/(1−ᾱ_t)·(1−ᾱ_t/ᾱ_s),
//
//	z_s = (κ·√ᾱ_s·ẑ + (1−ᾱ_s)·z')/(κ + 1 − ᾱ_s) + ε/√(1/κ + 1/(1−ᾱ_s))
//
// The last step minimises ‖y − A(D(z))‖² from its z', and the answer is D of the minimum.
type resample struct{}

// The values of the parameter estimate.
const (
	estimateNoise   = "noise"
	estimateTweedie = "tweedie"
)

// The flags of a planned step, 1 or 0.
const (
	doTravel = "travel"
	doPixel  = "pixel optimisation"
	doLatent = "latent optimisation"
)

func (resample) Info() Info {
	steps := func(name string, number float64, doc string) parameter.Parameter {
		return parameter.Parameter{Name: name, Integer: true, Min: 1, Max: 10000, Default: number, Doc: doc}
	}
	rate := func(name string, number float64, doc string) parameter.Parameter {
		return parameter.Parameter{Name: name, Max: largest, Open: true, Default: number, Doc: doc}
	}
	return Info{
		About: "DDIM with optimisation of the data term and stochastic resampling, with a latent prior",
		Citation: "B. Song, S. M. Kwon, Z. Zhang, X. Hu, Q. Qu, L. Shen: Solving Inverse Problems with Latent Diffusion Models via " +
			"Hard Data Consistency, ICLR 2024",
		Latent:         true,
		Undivided:      needsGradient,
		Differentiates: func(Settings) bool { return true },
		Parameters: parameter.List{
			{Name: "guidance", Max: largest, Default: 0.5, Doc: "factor of the gradient step through the network; the step size is guidance·ᾱ_t"},
			{Name: "estimate", Choices: []string{estimateNoise, estimateTweedie},
				Doc: "latent at which the data term is evaluated: with the factor 1−ᾱ_t of the noise (the authors' code), or √(1−ᾱ_t), the clean latent"},
			steps("interval", 10, "every interval-th step optimises"),
			steps("travel", 5, "steps of DDIM before an optimisation, at most interval"),
			rate("resample_scale", 40, "factor of the variance κ of the draw"),
			steps("pixel_steps", 2000, "largest number of iterations of an optimisation of the image"),
			rate("pixel_lr", 0.01, "learning rate of an optimisation of the image"),
			steps("latent_steps", 500, "largest number of iterations of an optimisation of the latent"),
			rate("latent_lr", 0.005, "learning rate of an optimisation of the latent"),
			{Name: "weight_decay", Max: largest, Default: 0.01, Doc: "decay of AdamW"},
			{Name: "tolerance", Max: largest, Default: 0.001, Unit: "units of y",
				Doc: "an optimisation ends for an image whose mean square residual is below its square"},
		},
		Steps: 500, Rows: presetRows("resample"),
		State: []Tensor{{Name: "z", Noise: true}},
		Draws: []Draw{{Name: "noise"}},
		Curves: []Curve{
			{Name: "data_norm", About: "‖y − A(D(e))‖ over the observed entries"},
			{Name: "resampled", About: "1 where the step optimises, otherwise 0", Scalar: "optimises"},
			{Name: "step_norm", About: "length of the gradient step"},
			{Name: "primal_norm", About: "‖ẑ − ê‖ of an optimisation, otherwise 0"},
		},
	}
}

func (resample) Plan(s Settings, schedule Schedule, _ operator.Shape) ([]Step, error) {
	levels, err := Levels(schedule, s.Steps)
	if err != nil {
		return nil, err
	}
	interval, travel := int(s.Number("interval")), travelSteps(s)
	third := len(levels) / 3
	var out []Step
	for i, l := range levels {
		rest := len(levels) - 1 - i // steps that follow
		flags := map[string]float64{doTravel: 0, doPixel: 0, doLatent: 0}
		ofClean, ofNext, std := 0.0, 1.0, 0.0
		switch {
		case rest == 0:
			flags[doLatent], ofClean, ofNext = 1, 1, 0
		case rest <= len(levels)-third && rest%interval == 0:
			flags[doTravel] = 1
			if rest >= third {
				flags[doPixel] = 1
			} else {
				flags[doLatent] = 1
			}
			noise := 1 - l.Next
			kappa := s.Number("resample_scale") * noise / (1 - l.Alpha) * (1 - l.Alpha/l.Next)
			ofClean, ofNext = kappa*math.Sqrt(l.Next)/(kappa+noise), noise/(kappa+noise)
			std = math.Sqrt(1 / (1/kappa + 1/noise))
		}
		st := Step{
			Time: l.Time,
			Scalars: map[string]float64{
				"next_of_clean": math.Sqrt(l.Next), "next_of_noise": math.Sqrt(1 - l.Next), "pull": s.Number("guidance") * l.Alpha,
				"of_clean": ofClean, "of_next": ofNext, "optimises": max(flags[doPixel], flags[doLatent]),
			},
			Std: map[string]float64{"noise": std},
		}
		for name, v := range flags {
			st.Scalars[name] = v
		}
		estimateScalars(st.Scalars, s, l.Alpha)
		travelLists(&st, s, levels, i, travel)
		out = append(out, st)
	}
	return out, nil
}

// estimateScalars plans the factors of z_t and of the noise in e.
func estimateScalars(into map[string]float64, s Settings, alpha float64) {
	noise := 1 - alpha
	if s.Word("estimate") == estimateTweedie {
		noise = math.Sqrt(noise)
	}
	into["estimate_of_xt"], into["estimate_of_noise"] = 1/math.Sqrt(alpha), -noise/math.Sqrt(alpha)
}

// travelSteps is the number of steps of DDIM before an optimisation, which at least as many steps follow.
func travelSteps(s Settings) int { return int(min(s.Number("travel"), s.Number("interval"))) }

// travelLists plans the steps of DDIM that continue after step i. As in the authors' code, each evaluates the network at the
// time after the one whose ᾱ it has: they lag one step behind.
func travelLists(st *Step, s Settings, levels []Level, i, travel int) {
	st.Times, st.Lists = map[string][]int{"travel": nil}, map[string][]float64{}
	last := len(levels) - 1
	for k := i; k < i+travel; k++ {
		l := levels[min(k, last)]
		st.Times["travel"] = append(st.Times["travel"], levels[min(k+1, last)].Time)
		e := map[string]float64{}
		estimateScalars(e, s, l.Alpha)
		clean := 1 / math.Sqrt(l.Alpha)
		// z_s = √ᾱ_s·(z_t − √(1−ᾱ_t)·ε̂)/√ᾱ_t + √(1−ᾱ_s)·ε̂
		e["travel_of_xt"] = math.Sqrt(l.Next) * clean
		e["travel_of_noise"] = math.Sqrt(1-l.Next) - math.Sqrt(l.Next)*clean*math.Sqrt(1-l.Alpha)
		for name, v := range e {
			st.Lists[name] = append(st.Lists[name], v)
		}
	}
}

func (resample) Step(b *Builder, s Settings) Next {
	zt := b.State("z")
	clean := b.Clean(zt)
	noise := b.NoiseOf(zt, clean, b.Now())
	e := b.Add(b.Mul(zt, b.Planned("estimate_of_xt")), b.Mul(noise, b.Planned("estimate_of_noise")))
	pull, norm := b.PullLatent(e, b.Planned("pull"), GradientNorm)
	pull = b.Gradient(e, zt, pull)
	next := b.Add(b.Add(b.Mul(clean, b.Planned("next_of_clean")), b.Mul(noise, b.Planned("next_of_noise"))), pull)
	// start is ê at steps that optimise, and ideal is ẑ; both are z' at the others.
	var start onnx.Value
	ideal := next
	for _, part := range []struct {
		flag  string
		build func(*Builder, Settings, onnx.Value) []onnx.Value
	}{{doTravel, travelStep}, {doPixel, pixelOptimum}, {doLatent, latentOptimum}} {
		changed := b.When(part.flag, []onnx.Value{ideal}, func(b *Builder, state []onnx.Value) []onnx.Value {
			return part.build(b, s, state[0])
		})
		if ideal = changed[0]; part.flag == doTravel {
			start = ideal
		}
	}
	answer := b.Add(b.Add(b.Mul(ideal, b.Planned("of_clean")), b.Mul(next, b.Planned("of_next"))), b.Draw("noise"))
	return Next{
		State: map[string]onnx.Value{"z": answer},
		Curves: map[string]onnx.Value{
			"data_norm": norm, "step_norm": b.Norm(pull), "primal_norm": b.Norm(b.Minus(ideal, start)),
		},
	}
}

// travelStep returns the latent e after the planned steps of DDIM from z.
func travelStep(b *Builder, s Settings, z onnx.Value) []onnx.Value {
	final := b.Repeat(travelSteps(s), "", []onnx.Value{z, z},
		func(b *Builder, i, _ onnx.Value, state []onnx.Value) []onnx.Value {
			z, at := state[0], b.Moment("travel", i)
			clean := b.CleanAt(z, at)
			noise := b.NoiseOf(z, clean, at)
			next := b.Add(b.Mul(z, b.Listed("travel_of_xt", i)), b.Mul(noise, b.Listed("travel_of_noise", i)))
			return []onnx.Value{next, b.Add(b.Mul(z, b.Listed("estimate_of_xt", i)), b.Mul(noise, b.Listed("estimate_of_noise", i)))}
		})
	return final[1:]
}

// window is the number of iterations after which an optimisation of the latent must have lowered its loss, from the authors'
// code.
const window = 200

// pixelOptimum returns E(x) for the image x with a small ‖y − A(x)‖², from x = D(z).
func pixelOptimum(b *Builder, s Settings, z onnx.Value) []onnx.Value {
	x := b.Decode(z)
	o := adam{float32(s.Number("pixel_lr")), float32(s.Number("weight_decay"))}
	state := append(o.start(b, x), ones(b))
	final := b.Repeat(int(s.Number("pixel_steps")), "", state, func(b *Builder, _, _ onnx.Value, state []onnx.Value) []onnx.Value {
		pull, loss := meanLoss(b, state[0], b.Pull)
		next := o.step(b, state, b.Neg(pull), asItems(b, state[5], 4))
		return append(next, b.Mul(state[5], b.larger(loss, b.tolerance(s))))
	})
	z = b.Encode(final[0])
	return []onnx.Value{z}
}

// latentOptimum returns the latent z with a small ‖y − A(D(z))‖². It ends for an image whose loss is not below that of
// 200 iterations before.
func latentOptimum(b *Builder, s Settings, z onnx.Value) []onnx.Value {
	o := adam{float32(s.Number("latent_lr")), float32(s.Number("weight_decay"))}
	n := z.Dims[0]
	past := b.Expand(b.Scalar(3e38), n, window)
	state := append(o.start(b, z), ones(b), past)
	final := b.Repeat(int(s.Number("latent_steps")), "", state, func(b *Builder, _, _ onnx.Value, state []onnx.Value) []onnx.Value {
		pull, loss := meanLoss(b, state[0], b.PullLatent)
		next := o.step(b, state, b.Neg(pull), asItems(b, state[5], 4))
		// 1 − larger(loss, old) is 1 if loss ≤ old.
		falls := b.Minus(b.Scalar(1), b.larger(loss, b.Reshape(b.Slice(state[6], 1, 0, 1), n)))
		active := b.Mul(state[5], b.Mul(falls, b.larger(loss, b.tolerance(s))))
		recorded := b.Concat(1, b.Slice(state[6], 1, 1, window), b.Reshape(loss, n, 1))
		return append(next, active, recorded)
	})
	return final[:1]
}

// meanLoss returns the step −∇ of the mean square residual and its value per image, [N].
func meanLoss(b *Builder, v onnx.Value, pull func(v, gamma onnx.Value, gradient string) (onnx.Value, onnx.Value)) (step, loss onnx.Value) {
	share := b.Scalar(1 / float32(b.run.Operator.MeasurementSize()))
	step, norm := pull(v, share, GradientSquared)
	return step, b.Mul(b.Mul(norm, norm), share)
}

// tolerance is the loss at which an optimisation ends.
func (b *Builder) tolerance(s Settings) onnx.Value {
	return b.Scalar(float32(s.Number("tolerance") * s.Number("tolerance")))
}

// ones returns a one for each image, [N].
func ones(b *Builder) onnx.Value { return b.Add(b.Zeros(), b.Scalar(1)) }
