package method

import (
	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// FastDIPS is FAST-DIPS: at each noise level of an annealing, ADMM pulls the prior's clean image to a small ball around the measurement. Its state is
// x = x₀ + σ_i·ε at the levels σ₀ > σ₁ > … of [daps], with x = σ₀·ε at the start. With the clean image z of x, not clipped, step i begins with
// w = z, v = A(z), u = 0, and repeats admm_steps times
//
//	w = w − α·g, descent_steps times, down the gradient g of F(w) = ‖w − z‖²/(2σ_i²) + ρ/2·‖A(w) − v + u‖²
//	v = the point nearest to A(w) + u with ‖v − y‖ ≤ epsilon
//	u = u + A(w) − v
//
// and adds noise: x = w + σ_{i+1}·ε. The answer is z of the last step, clipped to [−1, 1]. α minimises F along g where A is replaced by its difference for the
// step 0.001·g; it is at most 1, and halved up to eight times while F rises. The difference is that of the code for pixels; F of a linear A does not rise.
//
// The code's networks take real times; here the network is evaluated at the time of the nearest level, and the levels themselves are exact.
type fastDIPS struct{}

func (fastDIPS) Info() Info {
	return Info{
		About: "annealing with ADMM towards a ball around the measurement at each noise level",
		Citation: "M. Kim, S. Shin, H. Lim: FAST-DIPS: Adjoint-Free Analytic Steps and Hard-Constrained Likelihood Correction for " +
			"Diffusion-Prior Inverse Problems, ICLR 2026",
		Parameters: parameter.List{
			{Name: "sigma_max", Max: largest, Open: true, Default: 100, Doc: "noise level of the first step"},
			{Name: "sigma_min", Max: largest, Open: true, Default: 0.1, Doc: "noise level to which the annealing goes; it has no step of its own"},
			{Name: "admm_steps", Integer: true, Min: 1, Max: 100, Default: 3, Doc: "iterations of ADMM in a step"},
			{Name: "descent_steps", Integer: true, Min: 1, Max: 20, Default: 1, Doc: "gradient steps in an iteration"},
			{Name: "rho", Max: largest, Open: true, Default: 200, Doc: "weight ρ of the constraint against the prior"},
			{Name: "epsilon", Max: largest, Default: 0.05, Unit: "units of y", Doc: "largest distance of v from y, a norm over all entries"},
			Mirror(),
		},
		Steps: 75, Rows: presetRows("fast_dips"),
		State: []Tensor{{Name: "x", Noise: true}},
		Draws: []Draw{{Name: "noise"}},
		Curves: []Curve{
			{Name: "sigma", About: "noise level σ of the step", Scalar: "sigma"},
			{Name: "data_norm", About: "‖y − A(w)‖ over the observed entries"},
			{Name: "primal_norm", About: "‖w − z‖"},
		},
	}
}

func (fastDIPS) Plan(s Settings, schedule Schedule, _ operator.Shape) ([]Step, error) {
	// The chain of anneal is not used; its ODE has one level, that of the step.
	one := parameter.Number(1)
	levels, err := anneal(schedule, s.With("ode_steps", one).With("lr", one).With("lr_ratio", one).With("ode_end", s.Value("sigma_min")))
	var out []Step
	for i, a := range levels {
		st := a.step()
		st.Scalars["weight"], st.Scalars["last"] = 1/(a.level*a.level), 0
		if i == len(levels)-1 {
			st.Scalars["last"] = 1
		}
		out = append(out, st)
	}
	return out, err
}

func (fastDIPS) Step(b *Builder, s Settings) Next {
	first := b.Index(0)
	z := denoise(b, b.Mul(b.State("x"), b.Planned("start")), b.Moment("ode", first), b.Listed("level", first), b.Listed("input", first))
	_, seen := b.observed(z)
	final := b.Repeat(int(s.Number("admm_steps")), "", []onnx.Value{z, seen, b.Mul(seen, b.Scalar(0))},
		func(b *Builder, _, _ onnx.Value, state []onnx.Value) []onnx.Value {
			w, v, u := state[0], state[1], state[2]
			for range int(s.Number("descent_steps")) {
				w = b.descend(w, z, b.Minus(v, u), s.Number("rho"))
			}
			_, seen := b.observed(w)
			apart := b.weighted(b.Minus(b.Add(seen, u), b.in.measurement))
			share := b.Clip(b.Div(b.Scalar(float32(s.Number("epsilon"))), b.Max(b.Norm(apart), b.Scalar(tiny))), 0, 1)
			v = b.weighted(b.Add(b.in.measurement, b.perImage(apart, share)))
			return []onnx.Value{w, v, b.Minus(b.Add(u, seen), v)}
		})
	w, last := final[0], b.Planned("last")
	next := b.Add(b.Add(w, b.Mul(b.Minus(b.Clip(z, -1, 1), w), last)), b.Draw("noise"))
	return Next{
		State:  map[string]onnx.Value{"x": next},
		Curves: map[string]onnx.Value{"data_norm": b.Norm(b.Residual(w)), "primal_norm": b.Norm(b.Minus(w, z))},
	}
}

// probeStep is the share of the gradient at which [Builder.descend] evaluates A.
const probeStep = 1e-3

// descend returns w after one gradient step of F(w) = weight/2·‖w − z‖² + ρ/2·‖A(w) − target‖², with the planned weight.
func (b *Builder) descend(w, z, target onnx.Value, rho float64) onnx.Value {
	weight, r := b.Planned("weight"), b.Scalar(float32(rho))
	at, seen := b.observed(w)
	off, apart := b.Minus(seen, target), b.Minus(w, z)
	b.spend(Cost{Operator: 1})
	g := b.Add(b.Mul(apart, weight), b.Mul(built(at.Gradient(b.weighted(off))), r))
	_, probed := b.observed(b.Add(w, b.Mul(g, b.Scalar(probeStep))))
	change := b.Mul(b.Minus(probed, seen), b.Scalar(1/probeStep))
	slope := b.Add(b.Mul(b.dot(apart, g), weight), b.Mul(b.dot(off, change), r))
	curvature := b.Add(b.Mul(b.dot(g, g), weight), b.Mul(b.dot(change, change), r))
	length := b.Clip(b.Div(slope, b.Max(curvature, b.Scalar(1e-6))), 0, 1)
	if !b.run.Operator.Linear {
		energy := func(b *Builder, off, apart onnx.Value) onnx.Value {
			return b.Add(b.Mul(b.dot(apart, apart), weight), b.Mul(b.dot(off, off), r))
		}
		before := energy(b, off, apart)
		length = b.Repeat(8, "", []onnx.Value{length}, func(b *Builder, _, _ onnx.Value, state []onnx.Value) []onnx.Value {
			moved := b.Minus(w, b.perImage(g, state[0]))
			_, seen := b.observed(moved)
			rises := b.larger(energy(b, b.Minus(seen, target), b.Minus(moved, z)), before)
			return []onnx.Value{b.Mul(state[0], b.Minus(b.Scalar(1), b.Mul(rises, b.Scalar(0.5))))}
		})[0]
	}
	return b.Minus(w, b.perImage(g, length))
}

// observed returns A(x), and its values with zeros for unobserved entries.
func (b *Builder) observed(x onnx.Value) (operator.Applied, onnx.Value) {
	a := b.apply(x)
	b.applied(x, a.Y)
	return a, b.weighted(a.Y)
}

// weighted returns values in the shape of y with zeros for unobserved entries.
func (b *Builder) weighted(y onnx.Value) onnx.Value {
	return b.run.Operator.Weighted(b.Graph, y, b.in.mask)
}
