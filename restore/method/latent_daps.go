package method

import (
	"math"

	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// LatentDAPS is decoupled annealing posterior sampling in the latent space of a prior with decoder D. Its state is z = z₀ + σ_i·ε at
// the noise levels σ₀ > σ₁ > … of an annealing, with z = σ₀·ε at the start. Step i
//
//	solves the probability-flow ODE from level τ₀ = σ_i to τ_K in K Euler steps, v = ẑ + (τ_{k+1}/τ_k)·(v − ẑ), where ẑ is the prior's
//	clean latent of v at level τ_k; the last v is ẑ₀,
//	runs a chain of damped Hamiltonian Monte Carlo from w = ẑ₀ and a velocity p ~ N(0, I), with step size η_i,
//	    g = clip(∇_w‖y − A(D(w))‖², −1, 1)/τ² + (w − ẑ₀)/σ_i²
//	    p = m·p − √η_i·g + √(2(1−m))·ε
//	    w = w + √η_i·p
//	and adds noise: z = w + σ_{i+1}·ε, with σ = 0 after the last step.
//
// The answer is D(z).
type latentDAPS struct{}

func (latentDAPS) Info() Info {
	return Info{
		About:    "decoupled annealing posterior sampling with a latent prior",
		Citation: dapsCitation, Latent: true, Samples: true,
		Differentiates: func(Settings) bool { return true },
		PerStep:        "ode_steps",
		Parameters: parameter.List{
			{Name: "sigma_max", Max: largest, Open: true, Default: 10, Doc: "noise level of the first step"},
			{Name: "sigma_min", Max: largest, Open: true, Default: 0.1, Doc: "noise level to which the annealing goes; it has no step of its own"},
			{Name: "ode_steps", Integer: true, Min: 1, Max: 100, Default: 2, Doc: "Euler steps K of the ODE in a step"},
			{Name: "ode_end", Max: largest, Open: true, Default: 0.001, Doc: "noise level at which the ODE ends"},
			{Name: "chain_steps", Integer: true, Min: 1, Max: 1000, Default: 40, Doc: "iterations of the chain in a step"},
			{Name: "lr", Max: largest, Open: true, Default: 1e-5, Doc: "step size η of the chain in the first step"},
			{Name: "lr_ratio", Max: 1, Open: true, Default: 1, Doc: "share of lr towards which the step size falls, in equal amounts"},
			{Name: "momentum", Max: 1, Default: 0.9, Doc: "share m of the velocity that an iteration keeps"},
			{Name: "tau", Max: largest, Open: true, Default: 0.01, Unit: "units of y",
				Doc: "scale τ of the data term; τ²/2 is the variance of the measurement noise that the chain assumes"},
		},
		Steps: 50, Rows: presetRows("latent_daps"),
		State: []Tensor{{Name: "z", Noise: true}},
		Draws: []Draw{{Name: "noise"}, {Name: "velocity"}, {Name: "chain", Count: func(s Settings) int { return int(s.Number("chain_steps")) }}},
		Curves: []Curve{
			{Name: "sigma", About: "noise level σ of the step", Scalar: "sigma"},
			{Name: "data_norm", About: "‖y − A(D(w))‖ over the observed entries, in the last iteration of the chain"},
			{Name: "primal_norm", About: "‖w − ẑ₀‖ after the chain"},
		},
	}
}

func (latentDAPS) Plan(s Settings, schedule Schedule, _ operator.Shape) ([]Step, error) {
	steps, err := anneal(schedule, s)
	var out []Step
	for _, a := range steps {
		st := a.step()
		st.Scalars["precision"] = 1 / (a.level * a.level)
		st.Std["velocity"], st.Std["chain"] = 1, math.Sqrt(2*(1-s.Number("momentum")))
		out = append(out, st)
	}
	return out, err
}

func (latentDAPS) Step(b *Builder, s Settings) Next {
	v := b.flow(b.Mul(b.State("z"), b.Planned("start")), int(s.Number("ode_steps")))
	zeros := b.Zeros()
	weight, m := b.Scalar(float32(1/(s.Number("tau")*s.Number("tau")))), b.Scalar(float32(s.Number("momentum")))
	chain := b.Repeat(int(s.Number("chain_steps")), "chain", []onnx.Value{v, b.Draw("velocity"), zeros},
		func(b *Builder, _, noise onnx.Value, state []onnx.Value) []onnx.Value {
			w, p := state[0], state[1]
			pull, norm := b.PullLatent(w, b.Scalar(1), GradientSquared)
			force := b.Add(b.Mul(b.Clip(pull, -1, 1), weight), b.Mul(b.Minus(v, w), b.Planned("precision")))
			p = b.Add(b.Add(b.Mul(p, m), b.Mul(force, b.Planned("root"))), noise)
			return []onnx.Value{b.Add(w, b.Mul(p, b.Planned("root"))), p, norm}
		})
	return Next{
		State:  map[string]onnx.Value{"z": b.Add(chain[0], b.Draw("noise"))},
		Curves: map[string]onnx.Value{"data_norm": chain[2], "primal_norm": b.Norm(b.Minus(chain[0], v))},
	}
}
