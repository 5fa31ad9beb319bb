package method

import (
	"math"

	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// PnPDM is PnP-DM, plug-and-play Monte Carlo with a diffusion prior: Gibbs sampling of p(x)·N(y; A(z), σ²·I)·N(z; x, ρ²·I) in turns, at a coupling ρ that falls
// from rho to rho_min. From x ~ N(0, I), step i has ρ = max(rho·rho_decay^i, rho_min) and
//
//	draws z from p(z | x, y), proportional to exp(−‖y − A(z)‖²/(2σ²) − ‖z − x‖²/(2ρ²)), σ being noise_std,
//	draws x from p(x | z), by the reverse diffusion from v = z at the noise level σ_0 = ρ through sde_steps levels to σ_K = 0:
//	    v = v + 2·(σ_{k+1}/σ_k − 1)·(v − x̂) + √(2·σ_k·(σ_k − σ_{k+1}))·ε, with the prior's clean image x̂ of v at level σ_k, not clipped
//
// and without noise in the last one. The answer is x. The σ_k before the last one are the seventh powers of an arithmetic sequence from ρ to sigma_min. For an operator with a decomposition
// A = U·S·Vᵀ, p(z | x, y) is Gaussian, and z is drawn exactly:
//
//	z = x + V·S/(S² + σ²/ρ²)·Uᵀ·(y − A·x) + V·(S²/σ² + 1/ρ²)^(−1/2)·Vᵀ·ε
//
// With weights w of the pixels of y, z is the minimum of ‖w·(y − A(z)) + σ·ε‖²/σ² + ‖z − x − ρ·ε'‖²/ρ², by [SVD.Proximal]: perturbed so, a minimum is a draw. For others, chain_steps iterations of Langevin dynamics from z = x replace it, z = z − lr·(∇_z‖y − A(z)‖²/(2σ²) + (z − x)/ρ²) + √(2·lr)·ε.
//
// For small ρ the law of x is the posterior. For any ρ it is that of noise of the covariance σ²·I + ρ²·A·Aᵀ, if A is linear.
//
// The code has one sequence of levels from 80 for all steps, of which it uses those below ρ; here each step has its own, from ρ itself, so that all make
// the same number of evaluations. Its networks take real times; here the network is evaluated at the time of the nearest level, and the levels themselves are
// exact. Its exact draw for super-resolution takes ε for coefficients of V, without Vᵀ, which is the same in law. The start is that of its class for batches.
type pnpDM struct{}

func (pnpDM) Info() Info {
	return Info{
		About: "split Gibbs sampling of the posterior, with reverse diffusion for the prior",
		Citation: "Z. Wu, Y. Sun, Y. Chen, B. Zhang, Y. Yue, K. L. Bouman: Principled Probabilistic Imaging using Diffusion Models as " +
			"Plug-and-Play Priors, NeurIPS 2024",
		Samples:   true,
		Undivided: "evaluates the network in a loop",
		PerStep:   "sde_steps",
		Parameters: parameter.List{
			{Name: "rho", Max: largest, Open: true, Default: 10, Doc: "coupling ρ of the first step: the standard deviation of z − x"},
			{Name: "rho_decay", Max: 1, Open: true, Default: 0.9, Doc: "factor of ρ from step to step"},
			{Name: "rho_min", Max: largest, Open: true, Default: 0.3, Doc: "lowest ρ"},
			{Name: "sde_steps", Integer: true, Min: 2, Max: 1000, Default: 24, Doc: "levels of the reverse diffusion in a step"},
			{Name: "sigma_min", Max: largest, Open: true, Default: 0.01, Doc: "last level of the reverse diffusion above zero"},
			{Name: "noise_std", Min: 0.0001, Max: 1, Default: 0.05, Unit: "units of y",
				Doc: "standard deviation σ of the measurement noise that the method assumes; the campaign's sigma unless it is set"},
			{Name: "chain_steps", Integer: true, Min: 1, Max: 1000, Default: 100, Doc: "iterations of Langevin dynamics, for operators without a decomposition"},
			{Name: "lr", Max: largest, Open: true, Default: 1e-4, Doc: "step size of Langevin dynamics"},
		},
		NoiseStd: "noise_std",
		Steps:    100, Rows: presetRows("pnpdm"),
		State: []Tensor{{Name: "x", Noise: true}},
		Draws: []Draw{
			{Name: "likelihood", Count: func(s Settings) int { return int(s.Number("chain_steps")) }},
			{Name: "sde", Count: func(s Settings) int { return int(s.Number("sde_steps")) }},
		},
		Curves: []Curve{
			{Name: "rho", About: "coupling ρ of the step", Scalar: "rho"},
			{Name: "data_norm", About: "‖y − A(x)‖ over the observed entries, before the step"},
			{Name: "primal_norm", About: "‖z − x‖ with the x of the step"},
		},
	}
}

func (pnpDM) Plan(s Settings, schedule Schedule, _ operator.Shape) ([]Step, error) {
	var out []Step
	sigma, count := s.Number("noise_std"), int(s.Number("sde_steps"))
	for i := range s.Steps {
		rho := max(s.Number("rho")*math.Pow(s.Number("rho_decay"), float64(i)), s.Number("rho_min"))
		levels := append(polynomial(rho, min(s.Number("sigma_min"), rho), count-1), 0)
		// Steps with one ρ would have one time: the time numbers the steps.
		st := Step{
			Time: s.Steps - 1 - i, Times: map[string][]int{}, Lists: map[string][]float64{}, Std: map[string]float64{"likelihood": 1, "sde": 1},
			Scalars: map[string]float64{"rho": rho, "ratio": sigma * sigma / (rho * rho), "tether": s.Number("lr") / (rho * rho)},
		}
		for k, l := range levels[:count] {
			spread := math.Sqrt(2 * l * (l - levels[k+1]))
			if k == count-1 {
				spread = 0
			}
			st.Times["sde"] = append(st.Times["sde"], nearestTime(schedule, l, schedule.Steps()))
			for name, v := range map[string]float64{"level": l, "input": 1 / math.Sqrt(1+l*l), "drift": 2 * (levels[k+1]/l - 1), "spread": spread} {
				st.Lists[name] = append(st.Lists[name], v)
			}
		}
		out = append(out, st)
	}
	return out, nil
}

func (pnpDM) Step(b *Builder, s Settings) Next {
	z, norm := b.likelihood(b.State("x"), s)
	x := b.Repeat(int(s.Number("sde_steps")), "sde", []onnx.Value{z}, func(b *Builder, i, noise onnx.Value, state []onnx.Value) []onnx.Value {
		v := state[0]
		clean := denoise(b, v, b.Moment("sde", i), b.Listed("level", i), b.Listed("input", i))
		drift := b.Mul(b.Minus(v, clean), b.Listed("drift", i))
		return []onnx.Value{b.Add(b.Add(v, drift), b.Mul(noise, b.Listed("spread", i)))}
	})[0]
	return Next{
		State:  map[string]onnx.Value{"x": x},
		Curves: map[string]onnx.Value{"data_norm": norm, "primal_norm": b.Norm(b.Minus(z, x))},
	}
}

// likelihood draws z given x and y. It returns ‖y − A(x)‖, too.
func (b *Builder) likelihood(x onnx.Value, s Settings) (z, norm onnx.Value) {
	sigma := s.Number("noise_std")
	if d, ok := b.decomposed(); ok {
		noise, ratio := b.DrawAt("likelihood", b.Index(0)), b.Planned("ratio")
		if b.run.Weighted {
			unused := b.DrawAt("sde", b.Index(int(s.Number("sde_steps"))-1)) // the last level has no noise
			return d.perturbed(x, noise, unused, sigma), b.Norm(b.Residual(x))
		}
		change, norm := d.Proximal(x, ratio)
		return b.Add(b.Add(x, change), d.spread(noise, ratio, sigma)), norm
	}
	lr := s.Number("lr")
	gamma := b.Reshape(b.Scalar(float32(lr/(2*sigma*sigma))), 1)
	chain := b.Repeat(int(s.Number("chain_steps")), "likelihood", []onnx.Value{x}, func(b *Builder, _, noise onnx.Value, state []onnx.Value) []onnx.Value {
		pull, _ := b.Pull(state[0], gamma, GradientSquared)
		change := b.Add(pull, b.Mul(b.Minus(x, state[0]), b.Planned("tether")))
		return []onnx.Value{b.Add(b.Add(state[0], change), b.Mul(noise, b.Scalar(float32(math.Sqrt(2*lr)))))}
	})
	return chain[0], b.Norm(b.Residual(x))
}

// perturbed draws z given x and a measurement with weights from noise in the shape of x and noise that covers y.
func (s SVD) perturbed(x, noise, ofY onnx.Value, sigma float64) onnx.Value {
	b := s.b
	z := b.Add(x, b.Mul(noise, b.Planned("rho")))
	r := b.Residual(z)
	for axis := 1; axis < len(r.Dims); axis++ { // y is at most as large as the image
		ofY = b.Slice(ofY, axis, 0, r.Dims[axis])
	}
	return b.Add(z, s.explain(b.Add(r, b.Mul(ofY, b.Scalar(float32(sigma)))), b.Planned("ratio")))
}
