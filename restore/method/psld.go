package method

import (
	"math"

	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// PSLD is posterior sampling with latent diffusion: a DDIM step, and a gradient step through network and autoencoder that
// joins the measurement term with a gluing term. From z_T ~ N(0, I), each step from time t to the next s is
//
//	z̃   = the prior's clean latent of z_t
//	z'  = √ᾱ_s·z̃ + √(1−ᾱ_s−σ_t²)·ε_θ(z_t, t) + σ_t·ε, with σ_t = η·√((1−ᾱ_s)/(1−ᾱ_t))·√(1−ᾱ_t/ᾱ_s)
//	x̃   = D(z̃),  r = y − A(x̃)
//	z_s = z' − ∇_{z_t}(ω·‖r‖ + γ·‖E(x̃ + B(r)) − z̃‖)
//
// and the answer is D(z_s) of the last step. B brings a residual to the image: it is the adjoint Aᵀ in the paper, and a change
// of size in the code.
type psld struct{}

// The values of the parameter back.
const (
	backResize  = "resize"
	backAdjoint = "adjoint"
)

func (psld) Info() Info {
	return Info{
		About: "posterior sampling with latent diffusion: gradient steps through network and autoencoder",
		Citation: "L. Rout, N. Raoof, G. Daras, C. Caramanis, A. Dimakis, S. Shakkottai: Solving Linear Inverse Problems Provably " +
			"via Posterior Sampling with Latent Diffusion Models, NeurIPS 2023",
		Latent:         true,
		Undivided:      needsGradient,
		Differentiates: func(Settings) bool { return true },
		Refuses:        refuseNonlinear,
		Parameters: parameter.List{
			{Name: "gamma", Max: largest, Default: 0.1, Doc: "weight γ of the gluing term"},
			{Name: "omega", Max: largest, Default: 1, Doc: "weight ω of the measurement term"},
			{Name: "eta", Max: 1, Default: 0, Doc: "new noise of a step: 0 is DDIM, 1 is DDPM"},
			{Name: "back", Choices: []string{backResize, backAdjoint},
				Doc: "way of the residual to the image: enlarged to its size (the authors' code), or by the adjoint (the paper, and always for one channel)"},
		},
		Steps: 1000, Rows: presetRows("psld"),
		State: []Tensor{{Name: "z", Noise: true}},
		Draws: []Draw{{Name: "noise"}},
		Curves: []Curve{
			{Name: "data_norm", About: "‖y − A(D(z̃))‖ over the observed entries"},
			{Name: "glue_norm", About: "‖E(x̃ + B(y − A(x̃))) − z̃‖"},
			{Name: "step_norm", About: "length of the gradient step"},
		},
	}
}

// refuseNonlinear is a Refuses of methods that need a linear operator.
func refuseNonlinear(task operator.Definition) string {
	switch {
	case task.Own != nil:
		return "it needs a linear operator, and the file of an operator does not state that it is one"
	case !task.Linear:
		return "it needs a linear operator"
	}
	return ""
}

func (psld) Plan(s Settings, schedule Schedule, _ operator.Shape) ([]Step, error) {
	levels, err := Levels(schedule, s.Steps)
	var out []Step
	for _, l := range levels {
		sigma := s.Number("eta") * math.Sqrt((1-l.Next)/(1-l.Alpha)*(1-l.Alpha/l.Next))
		out = append(out, Step{
			Time: l.Time,
			Scalars: map[string]float64{
				"next_of_clean": math.Sqrt(l.Next), "next_of_noise": math.Sqrt(max(0, 1-l.Next-sigma*sigma)),
			},
			Std: map[string]float64{"noise": sigma},
		})
	}
	return out, err
}

func (psld) Step(b *Builder, s Settings) Next {
	zt := b.State("z")
	z := b.Clean(zt)
	next := b.Add(b.Mul(z, b.Planned("next_of_clean")), b.Mul(b.NoiseOf(zt, z, b.Now()), b.Planned("next_of_noise")))
	next = b.Add(next, b.Draw("noise"))
	pull, curves := psldPull(b, s, z)
	pull = b.Gradient(z, zt, pull)
	curves["step_norm"] = b.Norm(pull)
	return Next{State: map[string]onnx.Value{"z": b.Add(next, pull)}, Curves: curves}
}

// psldPull returns −∇_z of the two terms at the clean latent z, and their norms as curves.
func psldPull(b *Builder, s Settings, z onnx.Value) (pull onnx.Value, curves map[string]onnx.Value) {
	image := b.Decode(z)
	a, r := b.residual(image)
	back := resizeBack(b)
	if op := b.run.Operator; s.Word("back") == backAdjoint || op.Measurement[0] != op.Image.Channels {
		back = adjointBack(b, a)
	}
	glued := b.Add(image, back.apply(r))
	encoded := b.Encode(glued)
	gap := b.Minus(encoded, z)
	dataNorm, glueNorm := b.Norm(r), b.Norm(gap)
	// q and d are the gradients of the terms by the gap and by A(x̃), where they enter with a minus.
	q := b.perImage(gap, b.Div(b.Scalar(float32(s.Number("gamma"))), b.Max(glueNorm, b.Scalar(tiny))))
	d := b.perImage(r, b.Div(b.Scalar(float32(s.Number("omega"))), b.Max(dataNorm, b.Scalar(tiny))))
	h := b.Gradient(encoded, glued, q)
	seed := b.weigh(b.Add(back.transposed(h), d))
	b.spend(Cost{Operator: 1})
	pull = b.Gradient(image, z, b.Minus(built(a.Gradient(seed)), h))
	return b.Add(pull, q), map[string]onnx.Value{"data_norm": dataNorm, "glue_norm": glueNorm}
}

// linearBack is a linear map from measurements to images, and its transpose.
type linearBack struct {
	apply, transposed func(onnx.Value) onnx.Value
}

// resizeBack repeats the rows and columns of a measurement up to the sides of the image.
func resizeBack(b *Builder) linearBack {
	from, to := b.run.Operator.Measurement, b.run.Operator.Image
	if from[1] == to.Height && from[2] == to.Width {
		same := func(v onnx.Value) onnx.Value { return v }
		return linearBack{same, same}
	}
	rows, columns := b.Const(nearest(to.Height, from[1]), to.Height, from[1]), b.Const(nearest(to.Width, from[2]), to.Width, from[2])
	flip := func(m onnx.Value) onnx.Value { return b.Transpose(m, 1, 0) }
	return linearBack{
		apply:      func(v onnx.Value) onnx.Value { return b.MatMul(b.MatMul(rows, v), flip(columns)) },
		transposed: func(v onnx.Value) onnx.Value { return b.MatMul(b.MatMul(flip(rows), v), columns) },
	}
}

// nearest returns the matrix that enlarges a line of n entries to m by repetition, in row order.
func nearest(m, n int) []float32 {
	out := make([]float32, m*n)
	for i := range m {
		out[i*n+i*n/m] = 1
	}
	return out
}

// adjointBack is Aᵀ of a linear A, which has been applied.
func adjointBack(b *Builder, a operator.Applied) linearBack {
	return linearBack{
		apply: func(v onnx.Value) onnx.Value {
			b.spend(Cost{Operator: 1})
			return built(a.Gradient(v))
		},
		transposed: func(v onnx.Value) onnx.Value {
			applied := b.apply(v)
			b.applied(v, applied.Y)
			return applied.Y
		},
	}
}
