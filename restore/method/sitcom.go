package method

import (
	"math"

	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// SITCOM is step-wise triple-consistent sampling: at each time, Adam moves the input of the network until the clean image explains the measurement, and the
// image gets new noise for the next time. From x_T ~ N(0, I), each step from time t to the next s begins with v = x_t, and repeats iterations times
//
//	z = the prior's clean image of v at time t, clipped to [−1, 1]
//	v = v after one step of Adam (β = 0.9, 0.999) down ∇_v‖y − A(z)‖², unless ‖y − A(z)‖² is below m·(noise_std + margin)²
//
// for a measurement of m observed entries; then x_s = √ᾱ_s·z + √(1−ᾱ_s)·ε with the last z. That of the last step is the answer. The times are those of DDRM.
//
// The step is that of the code for y with noise, without the paper's term λ‖x_t − v‖². The code answers with the iterate that is nearest to the true
// image; a method must not see it. For inpainting, one of its scripts puts y, noise included, in the place of the observed pixels of z. m counts all pixels
// in the code. The code ends a loop early; here an image stays as it is in the rest of a loop.
type sitcom struct{}

func (sitcom) Info() Info {
	return Info{
		About: "optimisation of the network's input at each time until the clean image explains the measurement",
		Citation: "I. R. Alkhouri, S. Liang, C.-H. Huang, J. Dai, Q. Qu, S. Ravishankar, R. Wang: SITCOM: Step-wise Triple-Consistent Diffusion " +
			"Sampling For Inverse Problems, ICML 2025",
		Undivided: loopsGradient,
		PerStep:   "iterations",
		Parameters: parameter.List{
			{Name: "iterations", Integer: true, Min: 1, Max: 1000, Default: 30, Doc: "largest number of steps of Adam in a step"},
			{Name: "lr", Max: largest, Open: true, Default: 0.02, Doc: "learning rate of Adam"},
			{Name: "noise_std", Max: 1, Default: 0.05, Unit: "units of y",
				Doc: "standard deviation of the measurement noise that the method assumes; the campaign's sigma unless it is set"},
			{Name: "margin", Max: largest, Default: 0.001, Unit: "units of y", Doc: "the steps of Adam end at a root mean square residual of noise_std + margin"},
		},
		NoiseStd: "noise_std",
		Steps:    20, Rows: presetRows("sitcom"),
		State: []Tensor{{Name: "x", Noise: true}},
		Draws: []Draw{{Name: "noise"}},
		Curves: []Curve{
			{Name: "data_norm", About: "‖y − A(z)‖ over the observed entries, in the last iteration"},
			{Name: "moved", About: "‖v − x_t‖ after the step"},
			{Name: "optimised", About: "steps of Adam that the image took"},
		},
	}
}

func (sitcom) Plan(s Settings, schedule Schedule, _ operator.Shape) ([]Step, error) {
	var out []Step
	for _, l := range stridedLevels(schedule, schedule.Steps()-1, s.Steps) {
		out = append(out, Step{
			Time: l.Time, Scalars: map[string]float64{"next": math.Sqrt(l.Next)}, Std: map[string]float64{"noise": math.Sqrt(1 - l.Next)},
		})
	}
	return out, nil
}

func (sitcom) Step(b *Builder, s Settings) Next {
	xt := b.State("x")
	level := s.Number("noise_std") + s.Number("margin")
	observed := b.weigh(b.Expand(b.Scalar(1), b.run.Operator.MeasurementDims(xt.Dims[0])...))
	enough := b.Mul(b.Norm(observed), b.Scalar(float32(level)))
	optimiser := adam{rate: float32(s.Number("lr"))}
	zero := b.Mul(enough, b.Scalar(0))
	state := append(optimiser.start(b, xt), b.Mul(xt, b.Scalar(0)), zero, zero)
	state = b.Repeat(int(s.Number("iterations")), "", state, func(b *Builder, _, _ onnx.Value, state []onnx.Value) []onnx.Value {
		v, taken := state[0], state[len(state)-1]
		z := b.Clean(v)
		pull, norm := b.Pull(z, b.Reshape(b.Scalar(1), 1), GradientSquared)
		active := b.Minus(b.Scalar(1), b.larger(enough, norm))
		descent := b.Gradient(z, v, pull)
		next := optimiser.step(b, state[:5], b.Mul(descent, b.Scalar(-1)), asItems(b, active, len(v.Dims)))
		return append(next, z, norm, b.Add(taken, active))
	})
	z := state[5]
	return Next{
		State: map[string]onnx.Value{"x": b.Add(b.Mul(z, b.Planned("next")), b.Draw("noise"))},
		Curves: map[string]onnx.Value{
			"data_norm": state[6], "moved": b.Norm(b.Minus(state[0], xt)), "optimised": state[7],
		},
	}
}
