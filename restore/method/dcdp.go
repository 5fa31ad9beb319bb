package method

import (
	"fmt"
	"math"

	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// DCDP alternates data consistency and diffusion purification. From x = 0, each step k with the time t_k
//
//	repeats csgm_num_iterations times, from m = 0: m = momentum·m + ∇_x‖y − A(x)‖²/n, x = x − lr·m, for y of n elements
//	x_t = √ᾱ_t·x + √(1−ᾱ_t)·ε with t = t_k − 1
//	and runs DDIM without noise from x_t over ddim_num_iterations times from t_k − 1 to 0:
//	    z = the prior's clean image of x_t, clipped to [−1, 1];  ε̂ = (x_t − √ᾱ_t·z)/√(1−ᾱ_t);  x_s = √ᾱ_s·z + √(1−ᾱ_s)·ε̂
//	    with ᾱ_s = 1 in its last evaluation, which gives the next x.
//
// The answer is x after the last step. The t_k fall linearly from ddim_init_timestep to ddim_end_timestep; one evaluation is the
// second version of the algorithm, with Tweedie's formula. The number of steps is that of the alternations, K in the paper.
//
// As in the authors' code: the loss is a mean over the entries of y, the optimiser starts anew in each step, a t_k of 0 becomes
// 1, and at t_k = 1 DDIM starts one time later than the noise. lr is for 256×256 images and scales with the number of pixels, with
// which the mean falls. Where DDIM has fewer times than evaluations, its first time repeats, which changes nothing. Steps whose
// times would be equal move up to different times.
type dcdp struct{}

func (dcdp) Info() Info {
	return Info{
		About: "data consistency by gradient descent in turn with diffusion purification",
		Citation: "X. Li, S. M. Kwon, S. Liang, I. R. Alkhouri, S. Ravishankar, Q. Qu: Decoupled Data Consistency with Diffusion Purification for " +
			"Image Restoration, arXiv:2403.06054, 2024",
		Undivided: "evaluates the network in a loop",
		PerStep:   "ddim_num_iterations",
		Parameters: parameter.List{
			{Name: "csgm_num_iterations", Min: 1, Max: 10_000, Integer: true, Default: 100, Doc: "gradient steps of data consistency in a step"},
			{Name: "lr", Max: 1e9, Open: true, Default: 1000, Doc: "learning rate of data consistency for 256×256 images"},
			{Name: "momentum", Max: 1, Default: 0.9, Doc: "momentum of the gradient steps"},
			{Name: "ddim_init_timestep", Time: true, Unit: "time index", Default: 400, Doc: "number of diffusion steps to which the first step adds noise"},
			{Name: "ddim_end_timestep", Time: true, Unit: "time index", Default: 0, Doc: "number of diffusion steps to which the last step adds noise"},
			{Name: "ddim_num_iterations", Min: 1, Max: 1000, Integer: true, Default: 20, Doc: "network evaluations of a purification"},
			Mirror(),
		},
		Steps: 10, Rows: presetRows("dcdp"),
		State: []Tensor{{Name: "x"}},
		Draws: []Draw{{Name: "noise"}},
		Curves: []Curve{
			{Name: "data_norm", About: "‖y − A(x)‖ over the observed entries after data consistency"},
			{Name: "delta_consistency", About: "change of x by data consistency"},
			{Name: "delta_purification", About: "change of x by purification"},
		},
	}
}

func (dcdp) Plan(s Settings, schedule Schedule, image operator.Shape) ([]Step, error) {
	scale := float64(image.Height*image.Width) / (256 * 256)
	evaluations := int(s.Number("ddim_num_iterations"))
	first, last := s.Number("ddim_init_timestep"), s.Number("ddim_end_timestep")
	if last > first {
		return nil, fmt.Errorf("%w ddim_end_timestep: %g is above ddim_init_timestep, %g", ErrSetting, last, first)
	}
	var out []Step
	for _, t := range purificationTimes(s.Steps, schedule.Steps(), first, last) {
		times := ddimTimes(max(t, 2), evaluations)
		st := Step{
			Time: t - 1, Times: map[string][]int{"ddim": times}, Std: map[string]float64{"noise": 1},
			Lists:   map[string][]float64{"next_alpha": make([]float64, evaluations), "next_sigma": make([]float64, evaluations)},
			Scalars: map[string]float64{"lr": s.Number("lr") * scale, "momentum": s.Number("momentum")},
		}
		for i, l := range levelsAt(schedule, times) {
			st.Lists["next_alpha"][i], st.Lists["next_sigma"][i] = math.Sqrt(l.Next), math.Sqrt(1-l.Next)
		}
		out = append(out, st)
	}
	return out, nil
}

// purificationTimes are n numbers of diffusion steps, falling linearly from first to last, at least 1 and all different, for a
// schedule of total steps.
func purificationTimes(n, total int, first, last float64) []int {
	out := make([]int, n)
	for i := range out {
		share := float64(n-1-i) / float64(n-1)
		out[i] = max(int(math.RoundToEven(share*(first-last)+1e-6)+last), 1)
	}
	for i := n - 2; i >= 0; i-- {
		out[i] = max(out[i], out[i+1]+1)
	}
	for i := range out {
		out[i] = min(out[i], total-i)
	}
	return out
}

// ddimTimes are the n times of DDIM from steps−1 to 0. If there are fewer, the first one repeats.
func ddimTimes(steps, n int) []int {
	out := make([]int, n)
	distinct := min(steps, n)
	for i := range out {
		at := max(0, i-(n-distinct)) // from the first of the distinct times
		if distinct == 1 {
			out[i] = steps - 1
			continue
		}
		out[i] = int(math.RoundToEven(float64(distinct-1-at) * float64(steps-1) / float64(distinct-1)))
	}
	return out
}

func (dcdp) Step(b *Builder, s Settings) Next {
	before := b.State("x")
	still := b.Mul(before, b.Scalar(0))
	rate := b.Scalar(float32(1 / float64(b.run.Operator.MeasurementSize())))
	descended := b.Repeat(int(s.Number("csgm_num_iterations")), "", []onnx.Value{before, still},
		func(b *Builder, _, _ onnx.Value, state []onnx.Value) []onnx.Value {
			pull, _ := b.Pull(state[0], b.Reshape(rate, 1), GradientSquared)
			velocity := b.Add(b.Mul(state[1], b.Planned("momentum")), pull)
			return []onnx.Value{b.Add(state[0], b.Mul(velocity, b.Planned("lr"))), velocity}
		})
	consistent := descended[0]
	r := b.Residual(consistent)
	now := b.Now()
	noisy := b.Add(b.Mul(consistent, now.Alpha), b.Mul(b.Draw("noise"), now.Sigma))
	purified := b.Repeat(int(s.Number("ddim_num_iterations")), "", []onnx.Value{noisy},
		func(b *Builder, i, _ onnx.Value, state []onnx.Value) []onnx.Value {
			at := b.Moment("ddim", i)
			z := b.CleanAt(state[0], at)
			noise := b.NoiseOf(state[0], z, at)
			return []onnx.Value{b.Add(b.Mul(z, b.Listed("next_alpha", i)), b.Mul(noise, b.Listed("next_sigma", i)))}
		})
	return Next{
		State: map[string]onnx.Value{"x": purified[0]},
		Curves: map[string]onnx.Value{
			"data_norm": b.Norm(r), "delta_consistency": b.Norm(b.Minus(consistent, before)),
			"delta_purification": b.Norm(b.Minus(purified[0], consistent)),
		},
	}
}
