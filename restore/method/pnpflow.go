package method

import (
	"math"

	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// PnPFlow is plug-and-play flow matching: gradient steps of the data term in turns with a denoiser of the straight path x_t = (1 − t)·x + t·ε. From x = 0, step i
// of n at t = 1 − i/n is
//
//	z = x − lr·t^alpha·∇_x‖y − A(x)‖²/2
//	x = the mean over samples draws of ε of the prior's clean image of (1 − t)·z + t·ε at t, not clipped
//
// and the answer is x. The weight of z is 0 in the first step, so that the start does not matter.
//
// The time of the paper and the code is 1 − t. The paper's γ is lr·t^alpha·σ², and its data term has the factor 1/σ²: σ cancels. The code's
// networks take real times; here the network is evaluated at the time of the nearest noise level, and the levels themselves are exact.
type pnpFlow struct{}

func (pnpFlow) Info() Info {
	return Info{
		About:    "gradient steps of the data term in turns with the denoiser of a flow, at noise that falls evenly",
		Citation: "S. Martin, A. Gagneux, P. Hagemann, G. Steidl: PnP-Flow: Plug-and-Play Image Restoration with Flow Matching, ICLR 2025",
		PerStep:  "samples",
		Parameters: parameter.List{
			{Name: "lr", Max: largest, Open: true, Default: 1, Doc: "step size of the gradient step at t = 1"},
			{Name: "alpha", Max: 100, Default: 1, Doc: "power of t with which the step size falls; 0: it is constant"},
			{Name: "samples", Integer: true, Min: 1, Max: 100, Default: 5, Doc: "draws of noise whose clean images are averaged in a step"},
			Mirror(),
		},
		Steps: 100, Rows: presetRows("pnp_flow"),
		State: []Tensor{{Name: "x"}},
		Draws: []Draw{{Name: "noise", Count: func(s Settings) int { return int(s.Number("samples")) }}},
		Curves: []Curve{
			{Name: "t", About: "share t of the noise in the network's input", Scalar: "t"},
			{Name: "data_norm", About: "‖y − A(x)‖ over the observed entries, before the step"},
			{Name: "primal_norm", About: "‖x − z‖ with the x of the step"},
		},
	}
}

func (pnpFlow) Plan(s Settings, schedule Schedule, _ operator.Shape) ([]Step, error) {
	var out []Step
	for i, p := range interpolants(schedule, s.Steps) {
		st := p.step(s.Steps-1-i, int(s.Number("samples")))
		st.Scalars["gamma"] = s.Number("lr") * math.Pow(p.t, s.Number("alpha")) / 2 // of the gradient of the square
		st.Scalars["signal"], st.Std["noise"] = p.scale*(1-p.t), p.scale*p.t
		out = append(out, st)
	}
	return out, nil
}

func (pnpFlow) Step(b *Builder, s Settings) Next {
	x := b.State("x")
	pull, norm := b.Pull(x, b.Planned("gamma"), GradientSquared)
	z, samples := b.Add(x, pull), int(s.Number("samples"))
	signal := b.Mul(z, b.Planned("signal"))
	var sum onnx.Value
	for i := range samples {
		clean := b.destination(b.Add(signal, b.DrawAt("noise", b.Index(i))), i)
		if i == 0 {
			sum = clean
		} else {
			sum = b.Add(sum, clean)
		}
	}
	x = b.Mul(sum, b.Scalar(1/float32(samples)))
	return Next{
		State:  map[string]onnx.Value{"x": x},
		Curves: map[string]onnx.Value{"data_norm": norm, "primal_norm": b.Norm(b.Minus(x, z))},
	}
}
