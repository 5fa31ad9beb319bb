package method

import (
	"math"

	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// DMPlug optimises the seed of a generator: R(s) is the image to which K deterministic (DDIM) steps lead from the seed s, and Adam
// minimises the mean square of y − A(R(s)), differentiated through all K network evaluations. From s ~ N(0, I), v₀ = s, each step is
//
//	z_k     = the prior's clean image of v_k at time t_k, clipped to [−1, 1]
//	v_{k+1} = √ᾱ_{t_{k+1}}·z_k + √(1−ᾱ_{t_{k+1}})·(v_k − √ᾱ_{t_k}·z_k)/√(1−ᾱ_{t_k}), with ᾱ = 1 after the last
//	s       = s after one step of Adam (β = 0.9, 0.999) down ∇_s‖y − A(v_K)‖²/M, where y has M entries
//
// and the answer is v_K, the image of the seed before the last step of Adam. The times are those of the code's DDIM scheduler, k·⌊T/K⌋
// for k = K−1 … 0: the first one is not T−1. The code reports the iterate that is nearest to the true image, and the paper stops by the
// variance of the iterates; a method must not see the true image, and this one stops after its steps only. Too many of them fit
// the noise of the measurement.
type dmplug struct{}

func (dmplug) Info() Info {
	return Info{
		About: "optimisation of the seed of a few deterministic diffusion steps",
		Citation: "H. Wang, X. Zhang, T. Li, Y. Wan, T. Chen, J. Sun: DMPlug: A Plug-in Method for Solving Inverse Problems with " +
			"Diffusion Models, NeurIPS 2024",
		Undivided: needsGradient,
		PerStep:   "ddim_steps",
		Parameters: parameter.List{
			{Name: "lr", Max: largest, Open: true, Default: 0.01, Doc: "learning rate of Adam"},
			{Name: "ddim_steps", Integer: true, Min: 1, Max: 20, Default: 3, Doc: "deterministic steps K from the seed to the image"},
		},
		Steps: 5000, MaxSteps: 20_000, Rows: presetRows("dmplug"),
		State: []Tensor{{Name: "x"}, {Name: "seed", Noise: true}, {Name: "mean"}, {Name: "square"}},
		Curves: []Curve{
			{Name: "data_norm", About: "‖y − A(x)‖ over the observed entries"},
			{Name: "gradient_norm", About: "‖∇_s‖y − A(x)‖²/M‖"},
		},
	}
}

func (dmplug) Plan(s Settings, schedule Schedule, _ operator.Shape) ([]Step, error) {
	k := int(s.Number("ddim_steps"))
	times := make([]int, k)
	for i := range times {
		times[i] = (k - 1 - i) * (schedule.Steps() / k)
	}
	var out []Step
	for i := range s.Steps {
		// The corrections of Adam's moments, which start as zeros.
		first, second := 1-math.Pow(adamBeta1, float64(i+1)), 1-math.Pow(adamBeta2, float64(i+1))
		out = append(out, Step{
			Time: times[0], Times: map[string][]int{"ddim": times},
			Scalars: map[string]float64{"rate": s.Number("lr") / first, "root": 1 / math.Sqrt(second)},
		})
	}
	return out, nil
}

func (dmplug) Step(b *Builder, s Settings) Next {
	seed, k := b.State("seed"), int(s.Number("ddim_steps"))
	v := seed
	for i := range k {
		at := b.Moment("ddim", b.Index(i))
		z := b.CleanAt(v, at)
		if i == k-1 {
			v = z
			break
		}
		next := b.Moment("ddim", b.Index(i+1))
		v = b.Add(b.Mul(z, next.Alpha), b.Mul(b.NoiseOf(v, z, at), next.Sigma))
	}
	pull, norm := b.Pull(v, b.Scalar(1/float32(b.run.Operator.MeasurementSize())), GradientSquared)
	descent := b.Gradient(v, seed, pull)
	// The mean has the sign of the descent, not of the gradient.
	mean := b.average(b.State("mean"), descent, adamBeta1, 1-adamBeta1)
	square := b.average(b.State("square"), b.Mul(descent, descent), adamBeta2, 1-adamBeta2)
	root := b.Add(b.Mul(b.Sqrt(square), b.Planned("root")), b.Scalar(adamEpsilon))
	return Next{
		State: map[string]onnx.Value{
			"x": v, "seed": b.Add(seed, b.Mul(b.Div(mean, root), b.Planned("rate"))), "mean": mean, "square": square,
		},
		Curves: map[string]onnx.Value{"data_norm": norm, "gradient_norm": b.Norm(descent)},
	}
}
