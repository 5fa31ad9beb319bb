package method

import (
	"fmt"
	"math"

	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
	"ddiff/restore/prior"
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
//	    mh         w′ = w + √η_i·ε, accepted with the probability min(1, exp(‖y − A(w)‖²/2τ² + ‖w − x̂₀‖²/2σ_i² − the same of w′))
//	and adds noise: x = w + σ_{i+1}·ε, with σ = 0 after the last step.
//
// The answer is x. Both sequences of levels are seventh powers of arithmetic sequences; that of the annealing ends one step above
// sigma_min. η_i falls from lr towards lr·lr_ratio in equal amounts.
//
// The code differs from the paper, and is followed. Its gradient has the factor 1/τ² instead of 1/(2τ²), so that the chains langevin
// and hmc take the variance of the measurement noise for τ²/2, and mh takes it for τ². Its ODE ends at ode_end, not at 0. Its
// networks take real times; here the network is evaluated at the time of the nearest level, and the levels themselves are exact.
func DAPS() Method { return daps{} }

type daps struct{}

// The values of the parameter chain.
const (
	chainLangevin = "langevin"
	chainHMC      = "hmc"
	chainMH       = "mh"
)

func (daps) Info() Info {
	return Info{
		Name: "daps", About: "decoupled annealing posterior sampling", Citation: dapsCitation, Samples: true,
		PerStep: "ode_steps",
		Parameters: parameter.List{
			{Name: "sigma_max", Max: largest, Open: true, Default: 100, Doc: "noise level of the first step"},
			{Name: "sigma_min", Max: largest, Open: true, Default: 0.1, Doc: "noise level to which the annealing goes; it has no step of its own"},
			{Name: "ode_steps", Integer: true, Min: 1, Max: 100, Default: 5, Doc: "Euler steps K of the ODE in a step"},
			{Name: "ode_end", Max: largest, Open: true, Default: 0.01, Doc: "noise level at which the ODE ends"},
			{Name: "chain", Choices: []string{chainLangevin, chainHMC, chainMH},
				Doc: "Markov chain: Langevin dynamics, damped Hamiltonian Monte Carlo, or Metropolis-Hastings"},
			{Name: "chain_steps", Integer: true, Min: 1, Max: 1000, Default: 100, Doc: "iterations of the chain in a step"},
			{Name: "lr", Max: largest, Open: true, Default: 1e-4, Doc: "step size η of the chain in the first step"},
			{Name: "lr_ratio", Max: 1, Open: true, Default: 0.01, Doc: "share of lr towards which the step size falls, in equal amounts"},
			{Name: "momentum", Max: 1, Default: 0.9, Doc: "share m of the velocity that an iteration of hmc keeps"},
			{Name: "tau", Max: largest, Open: true, Default: 0.01, Unit: "units of y",
				Doc: "scale τ of the data term; langevin and hmc assume measurement noise of the variance τ²/2, mh of τ²"},
			Mirror(),
		},
		Steps: 200, Rows: presetRows("daps"),
		State: []Tensor{{Name: "x", Noise: true}},
		Draws: []Draw{
			{Name: "noise"}, {Name: "velocity"}, {Name: "chain", Count: func(s Settings) int { return int(s.Number("chain_steps")) }},
			{Name: "acceptance"}, // its first numbers decide on the proposals of mh, one each
		},
		Curves: []Curve{
			{Name: "sigma", About: "noise level σ of the step", Scalar: "sigma"},
			{Name: "data_norm", About: "‖y − A(w)‖ over the observed entries, in the last iteration of the chain"},
			{Name: "primal_norm", About: "‖w − x̂₀‖ after the chain"},
		},
	}
}

func (daps) Plan(s Settings, schedule prior.Schedule, image operator.Shape) ([]Step, error) {
	tau, chain := s.Number("tau"), s.Word("chain")
	if chain == chainMH && int(s.Number("chain_steps")) > image.Size() {
		return nil, fmt.Errorf("%w chain_steps: %g is more than the %d numbers of the image, from which mh draws", ErrSetting, s.Number("chain_steps"), image.Size())
	}
	steps, err := anneal(schedule, s)
	var out []Step
	for _, a := range steps {
		eta, st := a.rate, a.step()
		st.Scalars["data"], st.Scalars["tether"], st.Std["chain"] = eta/tau/tau, eta/a.level/a.level, math.Sqrt(2*eta)
		switch chain {
		case chainHMC: // the velocity is in units of √η
			st.Std["velocity"], st.Std["chain"] = math.Sqrt(eta), math.Sqrt(2*eta*(1-s.Number("momentum")))
		case chainMH:
			st.Scalars["data"], st.Scalars["tether"] = 0.5/tau/tau, 0.5/a.level/a.level
			st.Std["acceptance"], st.Std["chain"] = 1, math.Sqrt(eta)
		}
		out = append(out, st)
	}
	return out, err
}

func (daps) Step(b *Builder, s Settings) Next {
	clean := b.flow(b.Mul(b.State("x"), b.Planned("start")), int(s.Number("ode_steps")))
	run := gradientChain
	if s.Word("chain") == chainMH {
		run = metropolis
	}
	w, norm := run(b, s, clean)
	return Next{
		State:  map[string]onnx.Value{"x": b.Add(w, b.Draw("noise"))},
		Curves: map[string]onnx.Value{"data_norm": norm, "primal_norm": b.Norm(b.Minus(w, clean))},
	}
}

// gradientChain runs Langevin dynamics or Hamiltonian Monte Carlo from the clean image. It returns the last image and the data
// norm of the one before.
func gradientChain(b *Builder, s Settings, clean onnx.Value) (w, norm onnx.Value) {
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

// metropolis runs Metropolis-Hastings from the clean image. It returns the last image and its data norm. Float32 rounds the
// energy of a large image by more than 1, which would decide on proposals; ‖a‖² − ‖b‖² = ⟨a − b, a + b⟩ gives their change.
func metropolis(b *Builder, s Settings, clean onnx.Value) (w, norm onnx.Value) {
	n := clean.Dims[0]
	// The normal distribution function makes uniform numbers of normal ones.
	z := b.Transpose(b.Reshape(b.Draw("acceptance"), n, b.run.Operator.Image.Size()), 1, 0)
	half := b.Scalar(0.5)
	uniform := b.Add(b.Mul(b.Apply("Erf", onnx.Float, z.Dims, nil, b.Mul(z, b.Scalar(math.Sqrt2/2))), half), half)
	r := b.Residual(clean)
	last := b.Repeat(int(s.Number("chain_steps")), "chain", []onnx.Value{clean, r},
		func(b *Builder, i, noise onnx.Value, state []onnx.Value) []onnx.Value {
			w, r := state[0], state[1]
			proposed := b.Add(w, noise)
			residual := b.Residual(proposed)
			product := func(a, c onnx.Value) onnx.Value {
				p := b.Mul(a, c)
				return b.Reshape(b.ReduceSum(b.Reshape(p, n, p.Size()/n), 1), n)
			}
			rise := b.Add(
				b.Mul(product(b.Minus(residual, r), b.Add(residual, r)), b.Planned("data")),
				b.Mul(product(b.Minus(proposed, w), b.Add(b.Minus(proposed, clean), b.Minus(w, clean))), b.Planned("tether")))
			// Without the bound, exp overflows far down the hill.
			chance := b.Exp(b.Neg(b.Max(rise, b.Scalar(0))))
			accept := b.Cast(b.Apply("Less", onnx.Bool, []int{n}, nil, b.Gather(uniform, i), chance), onnx.Float)
			choose := func(old, proposed onnx.Value) onnx.Value {
				return b.Add(old, b.perImage(b.Minus(proposed, old), accept))
			}
			return []onnx.Value{choose(w, proposed), choose(r, residual)}
		})
	return last[0], b.Norm(last[1])
}

const dapsCitation = "B. Zhang, W. Chu, J. Berner, C. Meng, A. Anandkumar, Y. Song: Improving Diffusion Inverse Problem Solving with " +
	"Decoupled Noise Annealing, CVPR 2025"
