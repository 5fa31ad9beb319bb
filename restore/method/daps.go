package method

import (
	"math"

	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// DAPS is decoupled annealing posterior sampling. Its state is x = x₀ + σ_i·ε at the noise levels σ₀ > σ₁ > … of an annealing, with
// x = σ₀·ε at the start. Step i
//
//	solves the probability-flow ODE from level τ₀ = σ_i to τ_K in K Euler steps, v = x̂ + (τ_{k+1}/τ_k)·(v − x̂), where x̂ is the prior's
//	clean image of v at level τ_k, not clipped; the last v is x̂₀,
//	runs a Markov chain from w = x̂₀ with step size η_i and the score
//	    g = −∇_w‖y − A(w)‖²/τ² + (x̂₀ − w)/σ_i²
//	    langevin   w = w + η_i·g + √(2η_i)·ε
//	    hmc        p = m·p + √η_i·g + √(2(1−m))·ε,  w = w + √η_i·p, from p ~ N(0, I)
//	and adds noise: x = w + σ_{i+1}·ε, with σ = 0 after the last step.
//
// The answer is x. Both sequences of levels are seventh powers of arithmetic sequences; that of the annealing ends one step above
// sigma_min. η_i falls from lr towards lr·lr_ratio in equal amounts.
//
// The code differs from the paper, and is followed. Its gradient has the factor 1/τ² instead of 1/(2τ²), so that the chains take the
// variance of the measurement noise for τ²/2. Its ODE ends at ode_end, not at 0. Its networks take real times; here the network is
// evaluated at the time of the nearest level, and the levels themselves are exact. Its chain of Metropolis-Hastings, for operators
// without a gradient, is left out: here all operators have one.
type daps struct{}

// The values of the parameter chain.
const (
	chainLangevin = "langevin"
	chainHMC      = "hmc"
)

func (daps) Info() Info {
	return Info{
		About: "decoupled annealing posterior sampling", Citation: dapsCitation, Samples: true,
		PerStep: "ode_steps",
		Parameters: parameter.List{
			{Name: "sigma_max", Max: largest, Open: true, Default: 100, Doc: "noise level of the first step"},
			{Name: "sigma_min", Max: largest, Open: true, Default: 0.1, Doc: "noise level to which the annealing goes; it has no step of its own"},
			{Name: "ode_steps", Integer: true, Min: 1, Max: 100, Default: 5, Doc: "Euler steps K of the ODE in a step"},
			{Name: "ode_end", Max: largest, Open: true, Default: 0.01, Doc: "noise level at which the ODE ends"},
			{Name: "chain", Choices: []string{chainLangevin, chainHMC},
				Doc: "Markov chain: Langevin dynamics, or damped Hamiltonian Monte Carlo"},
			{Name: "chain_steps", Integer: true, Min: 1, Max: 1000, Default: 100, Doc: "iterations of the chain in a step"},
			{Name: "lr", Max: largest, Open: true, Default: 1e-4, Doc: "step size η of the chain in the first step"},
			{Name: "lr_ratio", Max: 1, Open: true, Default: 0.01, Doc: "share of lr towards which the step size falls, in equal amounts"},
			{Name: "momentum", Max: 1, Default: 0.9, Doc: "share m of the velocity that an iteration of hmc keeps"},
			{Name: "tau", Max: largest, Open: true, Default: 0.01, Unit: "units of y",
				Doc: "scale τ of the data term; the chain assumes measurement noise of the variance τ²/2"},
			Mirror(),
			{Name: "start", Choices: []string{startNoise, startRough, startFilled},
				Doc: "what the first noise, of level sigma_max, is added to: nothing, y or A⁺·y (rough), or these with lost pixels filled"},
		},
		Steps: 200, Rows: presetRows("daps"),
		State: []Tensor{{Name: "x", Noise: true}},
		Draws: []Draw{
			{Name: "noise"}, {Name: "velocity"}, {Name: "chain", Count: func(s Settings) int { return int(s.Number("chain_steps")) }},
		},
		Curves: []Curve{
			{Name: "sigma", About: "noise level σ of the step", Scalar: "sigma"},
			{Name: "data_norm", About: "‖y − A(w)‖ over the observed entries, in the last iteration of the chain"},
			{Name: "primal_norm", About: "‖w − x̂₀‖ after the chain"},
		},
	}
}

func (daps) Plan(s Settings, schedule Schedule, _ operator.Shape) ([]Step, error) {
	tau := s.Number("tau")
	steps, err := anneal(schedule, s)
	var out []Step
	for i, a := range steps {
		eta, st := a.rate, a.step()
		st.Scalars["first"] = 0
		if i == 0 {
			st.Scalars["first"] = 1
		}
		st.Scalars["data"], st.Scalars["tether"], st.Std["chain"] = eta/tau/tau, eta/a.level/a.level, math.Sqrt(2*eta)
		if s.Word("chain") == chainHMC { // the velocity is in units of √η
			st.Std["velocity"], st.Std["chain"] = math.Sqrt(eta), math.Sqrt(2*eta*(1-s.Number("momentum")))
		}
		out = append(out, st)
	}
	return out, err
}

func (daps) Step(b *Builder, s Settings) Next {
	x := b.Mul(b.State("x"), b.Planned("start"))
	if s.Word("start") != startNoise {
		x = b.Add(x, b.Mul(b.begin(s), b.Planned("first")))
	}
	clean := b.flow(x, int(s.Number("ode_steps")))
	w, norm := markovChain(b, s, clean)
	return Next{
		State:  map[string]onnx.Value{"x": b.Add(w, b.Draw("noise"))},
		Curves: map[string]onnx.Value{"data_norm": norm, "primal_norm": b.Norm(b.Minus(w, clean))},
	}
}

// markovChain runs Langevin dynamics or Hamiltonian Monte Carlo from the clean image. It returns the last image and the data
// norm of the one before.
func markovChain(b *Builder, s Settings, clean onnx.Value) (w, norm onnx.Value) {
	hamiltonian := s.Word("chain") == chainHMC
	m := b.Scalar(float32(s.Number("momentum")))
	state := []onnx.Value{clean, b.Zeros()}
	if hamiltonian {
		state = append(state, b.Draw("velocity"))
	}
	last := b.Repeat(int(s.Number("chain_steps")), "chain", state, func(b *Builder, _, noise onnx.Value, state []onnx.Value) []onnx.Value {
		w := state[0]
		pull, norm := b.Pull(w, b.Planned("data"), GradientSquared)
		change := b.Add(b.Add(pull, b.Mul(b.Minus(clean, w), b.Planned("tether"))), noise)
		if !hamiltonian {
			return []onnx.Value{b.Add(w, change), norm}
		}
		change = b.Add(b.Mul(state[2], m), change)
		return []onnx.Value{b.Add(w, change), norm, change}
	})
	return last[0], last[1]
}

const dapsCitation = "B. Zhang, W. Chu, J. Berner, C. Meng, A. Anandkumar, Y. Song: Improving Diffusion Inverse Problem Solving with " +
	"Decoupled Noise Annealing, CVPR 2025"
