package method

import (
	"math"

	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
	"ddiff/restore/prior"
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
func LatentDAPS() Method { return latentDAPS{} }

type latentDAPS struct{}

func (latentDAPS) Info() Info {
	return Info{
		Name: "latent_daps", About: "decoupled annealing posterior sampling with a latent prior",
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
		Steps: 50, Rows: latentDAPSPublished(),
		State: []Tensor{{Name: "z", Noise: true}},
		Draws: []Draw{{Name: "noise"}, {Name: "velocity"}, {Name: "chain", Count: func(s Settings) int { return int(s.Number("chain_steps")) }}},
		Curves: []Curve{
			{Name: "sigma", About: "noise level σ of the step", Scalar: "sigma"},
			{Name: "data_norm", About: "‖y − A(D(w))‖ over the observed entries, in the last iteration of the chain"},
			{Name: "primal_norm", About: "‖w − ẑ₀‖ after the chain"},
		},
	}
}

func (latentDAPS) Plan(s Settings, schedule prior.Schedule, _ operator.Shape) ([]Step, error) {
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

func (latentDAPS) Step(b *Builder, s Settings) (Next, error) {
	v, err := b.flow(b.Mul(b.State("z"), b.Planned("start")), int(s.Number("ode_steps")))
	if err != nil {
		return Next{}, err
	}
	zeros := b.Zeros()
	weight, m := b.Scalar(float32(1/(s.Number("tau")*s.Number("tau")))), b.Scalar(float32(s.Number("momentum")))
	chain, err := b.Repeat(int(s.Number("chain_steps")), "chain", []onnx.Value{v, b.Draw("velocity"), zeros},
		func(b *Builder, _, noise onnx.Value, state []onnx.Value) ([]onnx.Value, error) {
			w, p := state[0], state[1]
			pull, norm, err := b.PullLatent(w, b.Scalar(1), GradientSquared)
			if err != nil {
				return nil, err
			}
			force := b.Add(b.Mul(b.Clip(pull, -1, 1), weight), b.Mul(b.Minus(v, w), b.Planned("precision")))
			p = b.Add(b.Add(b.Mul(p, m), b.Mul(force, b.Planned("root"))), noise)
			return []onnx.Value{b.Add(w, b.Mul(p, b.Planned("root"))), p, norm}, nil
		})
	if err != nil {
		return Next{}, err
	}
	return Next{
		State:  map[string]onnx.Value{"z": b.Add(chain[0], b.Draw("noise"))},
		Curves: map[string]onnx.Value{"data_norm": chain[2], "primal_norm": b.Norm(b.Minus(chain[0], v))},
	}, nil
}

// latentDAPSPublished are the sections ldm of the authors' code, github.com/zhangbingliang2019/DAPS at 098df6b, folder configs/task,
// with 50 steps of two evaluations (commands/ldm_ffhq.sh:16 and commands/ldm_imagenet.sh:16). FFHQ and ImageNet have the same.
func latentDAPSPublished() []Row {
	var rows []Row
	for _, preset := range []string{"ffhq", "imagenet"} {
		row := func(task string, steps, lr, ratio, momentum float64) {
			rows = append(rows, publishedRow(preset, task, 50, "chain_steps", steps, "lr", lr, "lr_ratio", ratio, "momentum", momentum, "tau", 0.01))
		}
		row(operator.SuperResolution, 24, 1.35e-4, 0.023, 0.86) // down_sampling.yaml:35
		row(operator.InpaintBox, 15, 9.02e-6, 0.13, 0.74)       // inpainting.yaml:37
		row(operator.InpaintRandom, 38, 8.40e-6, 0.013, 0.92)   // inpainting_rand.yaml:37
		row(operator.GaussianDeblur, 35, 2.70e-6, 0.95, 0.95)   // gaussian_blur.yaml:35
		row(operator.MotionDeblur, 49, 2.4e-5, 0.041, 0.45)     // motion_blur.yaml:35
		row(operator.PhaseRetrieval, 65, 2.1e-5, 0.12, 0.41)    // phase_retrieval.yaml:33
		row(operator.NonlinearDeblur, 80, 3.71e-6, 0.024, 0.91) // nonlinear_blur.yaml:33
		row(operator.HDR, 38, 4.52e-6, 0.015, 0.58)             // hdr.yaml:33
	}
	return rows
}
