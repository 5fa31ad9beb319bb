package method

import (
	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// LatentDDiff is DDiff in the latent space of a prior with encoder E and decoder D (Algorithm 2 of the DDiff paper). From
// z_T ~ N(0, I) and u = 0, each step from time t to the next s predicts the clean latent z̃ of z_t, which is not clipped,
// and moves it towards the measurement by γ_t·∇. The parameter gradient names the form of ∇ as in [ddiff]: the gradient of a norm, of its square, or
// one of them divided by its length. Mode latent_dc differentiates ‖y − A(D(v))‖ through the decoder:
//
//	v   = z̃ − u
//	x̂   = v − γ_t·∇
//	x   = E(D(x̂)), or x̂ without re-encoding
//	u   = u + x − z̃
//
// Mode pixel_dc takes the gradient step of ‖y − A(v)‖ on the decoded image v. The paper subtracts the latent u from an image there. The
// parameter dual names the readings:
//
//	pixel     x̃ = D(z̃),  v = x̃ − u,             x̂ = v − γ_t·∇,  x = E(x̂),  u = u + x̂ − x̃
//	latent    v = D(z̃ − u),                      x̂ likewise,    x = E(x̂),  u = u + x − z̃
//	tangent   v = D(z̃) − (D(z̃ + u) − D(z̃)),  x̂ likewise,    x = E(x̂),  u = u + x − z̃
//
// Both modes end a step as DDiff does, with the u from before the step:
//
//	ε̂   = (z_t − √ᾱ_t·x)/√(1−ᾱ_t)
//	z_s = √ᾱ_s·(x + u) + √(1−ᾱ_s−σ_t²)·ε̂ + σ_t·ε, with ε = 0 for t ≤ t₀
//
// where a u of pixels enters as E(x̂ + u) instead of x + u. The answer is D(z_s) of the last step.
type latentDDiff struct{}

// The values of the parameters mode, dual and reencode.
const (
	modePixelDC  = "pixel_dc"
	modeLatentDC = "latent_dc"

	dualPixel   = "pixel"
	dualLatent  = "latent"
	dualTangent = "tangent"

	reencodeAlways = "always"
	reencodeNever  = "never"
)

// pixelDual reports whether the dual variable is an image.
func pixelDual(s Settings) bool { return s.Word("mode") == modePixelDC && s.Word("dual") == dualPixel }

func (latentDDiff) Info() Info {
	return Info{
		About: "Dual Ascent Diffusion with a latent prior", Citation: ddiffCitation, Latent: true,
		Differentiates: func(s Settings) bool { return s.Word("mode") == modeLatentDC },
		Parameters: append(parameter.List{
			{Name: "mode", Choices: []string{modePixelDC, modeLatentDC},
				Doc: "the gradient step is on the decoded image (pixel_dc), or on the latent through the decoder (latent_dc)"},
			{Name: "dual", Choices: []string{dualPixel, dualLatent, dualTangent},
				Doc: "the dual variable of pixel_dc: an image, a latent that is subtracted before decoding, or a latent carried to " +
					"the image by the decoder's change"},
			{Name: "reencode", Choices: []string{reencodeAlways, reencodeNever},
				Doc: "latent_dc decodes and encodes the latent after the gradient step"},
		}, append(stepSize(), reverseNoise()...)...),
		Required: []string{"gamma0"},
		Steps:    1000, Rows: presetRows("latent_ddiff"),
		State: []Tensor{{Name: "z", Noise: true}, {Name: "u", Pixels: pixelDual}},
		Draws: []Draw{{Name: "noise"}},
		Curves: []Curve{
			{Name: "gamma", About: "step size γ_t", Scalar: "gamma"},
			{Name: "data_norm", About: "‖y − A‖ over the observed entries, of the image at which the gradient is taken"},
			{Name: "primal_norm", About: "‖x − z̃‖, with dual pixel ‖x̂ − D(z̃)‖: the change of u"},
			{Name: "dual_norm", About: "‖u‖ after the step"},
		},
	}
}

func (latentDDiff) Plan(s Settings, schedule Schedule, image operator.Shape) ([]Step, error) {
	steps, err := ddiff{noisy: true}.Plan(s, schedule, image)
	for _, st := range steps {
		// The factor of x in ε̂: an image as dual variable separates it from that of x + u.
		st.Scalars["next_of_noise"] = st.Scalars["next_of_x"] - st.Scalars["next_of_u"]
		st.Scalars["next_of_clean"] = st.Scalars["next_of_u"]
		delete(st.Scalars, "next_of_x")
		delete(st.Scalars, "next_of_u")
	}
	return steps, err
}

// moved is the outcome of the measurement step.
type moved struct {
	x     onnx.Value // the latent x
	clean onnx.Value // x + u, with the dual variable from before the step
	dual  onnx.Value // u after the step
	// growth is the change of the dual variable: x − z̃, or x̂ − D(z̃).
	growth onnx.Value
	norm   onnx.Value // of the data term
}

func (latentDDiff) Step(b *Builder, s Settings) Next {
	zt := b.State("z")
	z := b.Clean(zt)
	measure := latentStep
	switch {
	case pixelDual(s):
		measure = pixelDualStep
	case s.Word("mode") == modePixelDC:
		measure = pixelStep
	}
	m := measure(b, s, z)
	next := b.Add(b.Mul(m.clean, b.Planned("next_of_clean")), b.Mul(m.x, b.Planned("next_of_noise")))
	next = b.Add(b.Add(next, b.Mul(zt, b.Planned("next_of_xt"))), b.Draw("noise"))
	return Next{
		State: map[string]onnx.Value{"z": next, "u": m.dual},
		Curves: map[string]onnx.Value{
			"data_norm":   m.norm,
			"primal_norm": b.Norm(m.growth),
			"dual_norm":   b.Norm(m.dual),
		},
	}
}

// latentStep is the measurement step of latent_dc.
func latentStep(b *Builder, s Settings, z onnx.Value) moved {
	u := b.State("u")
	v := b.Minus(z, u)
	pull, norm := b.PullLatent(v, b.Planned("gamma"), s.Word("gradient"))
	x := b.Add(v, pull)
	if s.Word("reencode") == reencodeAlways {
		x = b.Encode(b.Decode(x))
	}
	return latentDualUpdate(b, z, x, norm)
}

// pixelStep is the measurement step of pixel_dc with a latent dual variable.
func pixelStep(b *Builder, s Settings, z onnx.Value) moved {
	u := b.State("u")
	var v onnx.Value
	if s.Word("dual") == dualTangent {
		at := b.Decode(z)
		v = b.Minus(at, b.Minus(b.Decode(b.Add(z, u)), at))
	} else {
		v = b.Decode(b.Minus(z, u))
	}
	pull, norm := b.Pull(v, b.Planned("gamma"), s.Word("gradient"))
	return latentDualUpdate(b, z, b.Encode(b.Add(v, pull)), norm)
}

// latentDualUpdate adds x − z̃ to a latent dual variable.
func latentDualUpdate(b *Builder, z, x, norm onnx.Value) moved {
	u := b.State("u")
	growth := b.Minus(x, z)
	return moved{x: x, clean: b.Add(x, u), dual: b.Add(u, growth), growth: growth, norm: norm}
}

// pixelDualStep is the measurement step of pixel_dc with an image as dual variable.
func pixelDualStep(b *Builder, s Settings, z onnx.Value) moved {
	u := b.State("u")
	image := b.Decode(z)
	v := b.Minus(image, u)
	pull, norm := b.Pull(v, b.Planned("gamma"), s.Word("gradient"))
	corrected := b.Add(v, pull)
	x, clean := b.Encode(corrected), b.Encode(b.Add(corrected, u))
	// u + x̂ − D(z̃) = x̂ − v
	return moved{x: x, clean: clean, dual: pull, growth: b.Minus(corrected, image), norm: norm}
}
