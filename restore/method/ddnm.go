package method

import (
	"math"

	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// DDNM is the denoising diffusion null-space model: the measurement replaces what a linear operator A sees of the prior's clean image. From
// x_T ~ N(0, I), each step from time t to the next s, with the prior's clean image z = x_0(x_t), not clipped, and its noise ε_θ, is
//
//	x̂   = z + A⁺·(y − A·z)
//	x_s = √ᾱ_s·x̂ + √(1−ᾱ_s)·(η·ε + √(1−η²)·ε_θ)
//
// and the answer is x̂ of the last step. This is the step for noise_std 0. For measurements with noise σ_y, DDNM+ weighs both terms in the spectral
// space of A, so that x_s has the noise of its level. In the authors' code this is the step of [ddrm] with η_b = 1, and the answer is z of the last step;
// the start differs. The times are those of DDRM.
//
// The code can travel back in time, and has a variant with one weight for all coefficients; both are left out. It sets singular
// values with a factor below 0.03 along an axis to zero, and treats them as unmeasured; the parameter zero has this limit.
type ddnm struct{}

func (ddnm) Info() Info {
	return Info{
		About:    "diffusion in the null space of a linear operator",
		Citation: "Y. Wang, J. Yu, J. Zhang: Zero-Shot Image Restoration Using Denoising Diffusion Null-Space Model, ICLR 2023",
		Parameters: parameter.List{
			{Name: "eta", Max: 1, Default: 0.85, Doc: "share η of new noise in the noise of a step: 0 deterministic, 1 all new"},
			{Name: "noise_std", Max: 1, Default: 0.05, Unit: "units of y",
				Doc: "standard deviation σ_y of the measurement noise that the method assumes, 0: DDNM, above: DDNM+; the campaign's sigma unless it is set"},
			{Name: "zero", Max: 1, Default: 0.03, Doc: "singular values with a factor below this limit along an axis count as zero"},
			Mirror(),
		},
		NoiseStd: "noise_std",
		Refuses:  wantsSVD,
		Samples:  true,
		Steps:    100, Rows: presetRows("ddnm"),
		State:  []Tensor{{Name: "x", Noise: true}},
		Draws:  []Draw{{Name: "noise"}},
		Curves: ddrm{}.Info().Curves,
	}
}

func (ddnm) Plan(s Settings, schedule Schedule, image operator.Shape) ([]Step, error) {
	return ddrm{}.Plan(s, schedule, image)
}

func (ddnm) Step(b *Builder, s Settings) Next {
	q, eta := newSpectral(b, s), s.Number("eta")
	q.paired = b.larger(q.values, b.Scalar(0))
	z, noise := b.UnclippedAt(b.State("x"), b.Now())
	residual := b.Residual(z)
	var next onnx.Value
	if s.Number("noise_std") > 0 {
		next = q.next(z, noise, eta, 1)
	} else {
		seen := b.Add(z, q.d.V(b.Mul(q.d.Ut(residual), q.inverse)))
		mixed := b.Add(b.Mul(b.Draw("noise"), b.Scalar(float32(eta))), b.Mul(noise, b.Scalar(float32(math.Sqrt(1-eta*eta)))))
		next = b.Mul(b.Add(seen, b.Mul(mixed, b.Planned("next_level"))), b.Planned("next_alpha"))
	}
	return Next{State: map[string]onnx.Value{"x": next}, Curves: map[string]onnx.Value{"data_norm": b.Norm(residual)}}
}
