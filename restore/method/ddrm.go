package method

import (
	"math"
	"slices"

	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// DDRM is denoising diffusion restoration: diffusion in the spectral space of a linear operator A = U·S·Vᵀ. In that space the
// coefficients x̃ = Vᵀ·x/√ᾱ_t of the state have noise of the level σ_t = √(1−ᾱ_t)/√ᾱ_t, and ỹ = Uᵀ·y has the noise σ_y. The start
// from ε̃ = Vᵀ·ε is, for each coefficient with its singular value s,
//
//	x̃_T = ỹ/s + √(σ_T² − σ_y²/s²)·ε̃    if s·σ_T > σ_y, else σ_T·ε̃;    x_T = V·x̃_T/σ_T
//
// and each step from time t to the next s, with the prior's clean image z = x_0(x_t), not clipped, and its noise ε_θ, is
//
//	x̃_s = z̃ + √(1−η²)·σ_s·ε̃_θ + η·σ_s·ε̃                    for coefficients that A does not measure
//	x̃_s = z̃ + √(1−η²)·σ_s·(ỹ − s·z̃)/σ_y + η·σ_s·ε̃         if s·σ_s < σ_y
//	x̃_s = (1−η_b)·z̃ + η_b·ỹ/s + √(σ_s² − η_b²·σ_y²/s²)·ε̃   if s·σ_s > σ_y
//	x_s = √ᾱ_s·V·x̃_s
//
// where a tilde marks Vᵀ times an image. The last step has σ_s = 0 and gives the answer z. The times are i·⌊T/S⌋ for
// i = S−1 … 0.
//
// The start divides by σ_T, as the authors' code does; the paper's is √ᾱ_T·x̃_T, which a start at another time than the last has here, too. The code sets singular values with a
// factor below 0.03 along an axis to zero, but treats them as measured; the parameter zero has this limit. The
// code's kernels are cut and its borders black; here the operator is the task's, decomposed exactly. The noise is drawn in pixels,
// so that the answer depends on A only and not on the choice of its singular vectors.
type ddrm struct{}

func (ddrm) Info() Info {
	return Info{
		About:    "diffusion in the spectral space of a linear operator",
		Citation: "B. Kawar, M. Elad, S. Ermon, J. Song: Denoising Diffusion Restoration Models, NeurIPS 2022",
		Parameters: slices.Concat(parameter.List{
			{Name: "eta", Max: 1, Default: 0.85, Doc: "share η of new noise in coefficients that are unmeasured or less noisy than y"},
			{Name: "eta_b", Max: 1, Default: 1, Doc: "weight η_b of y in coefficients that are noisier than y"},
			{Name: "noise_std", Max: 1, Default: 0.05, Unit: "units of y",
				Doc: "standard deviation σ_y of the measurement noise that the method assumes; the campaign's sigma unless it is set"},
			{Name: "zero", Max: 1, Default: 0.03, Doc: "singular values with a factor below this limit along an axis count as zero"},
			Mirror(),
		}, firstTime(startAtLast, startAtTime, startAtNoise), parameter.List{
			{Name: "start", Choices: []string{startNoise, startFilled},
				Doc: "coefficients that A does not measure begin as noise, or as those of y with lost pixels filled, with noise"},
		}),
		NoiseStd: "noise_std",
		Refuses:  wantsSVD,
		Samples:  true,
		Steps:    20, Rows: presetRows("ddrm"),
		State: []Tensor{{Name: "x", Noise: true}},
		Draws: []Draw{{Name: "noise"}},
		Curves: []Curve{
			{Name: "noise_level", About: "σ_s after the step", Scalar: "next_level"},
			{Name: "data_norm", About: "‖y − A(z)‖ over the observed entries"},
		},
	}
}

func (ddrm) Plan(s Settings, schedule Schedule, _ operator.Shape) ([]Step, error) {
	sigma, inverse := s.Number("noise_std"), 0.0
	if sigma > 0 {
		inverse = 1 / sigma
	}
	var out []Step
	for i, l := range stridedLevels(schedule, first(s, schedule), s.Steps) {
		scale := noiseLevel(l.Alpha)
		if s.Word("start_at") != startAtLast {
			scale = 1 / math.Sqrt(l.Alpha)
		}
		st := Step{Time: l.Time, Scalars: map[string]float64{
			"first": 0, "level": noiseLevel(l.Alpha), "scale": scale, "next_level": noiseLevel(l.Next), "next_alpha": math.Sqrt(l.Next),
			"sigma": sigma, "inverse_sigma": inverse,
		}}
		if i == 0 {
			st.Scalars["first"] = 1
		}
		if l.Next < 1 {
			st.Std = map[string]float64{"noise": 1}
		}
		out = append(out, st)
	}
	return out, nil
}

func (ddrm) Step(b *Builder, s Settings) Next {
	q, x := newSpectral(b, s), b.State("x")
	xt := b.Add(x, b.Mul(b.Minus(q.start(s, x), x), b.Planned("first")))
	z, noise := b.UnclippedAt(xt, b.Now())
	return Next{
		State:  map[string]onnx.Value{"x": q.next(z, noise, s.Number("eta"), s.Number("eta_b"))},
		Curves: map[string]onnx.Value{"data_norm": b.Norm(b.Residual(z))},
	}
}

// spectral is a step of DDRM: the singular values with their reciprocals, the coefficients on which y depends, and ỹ.
type spectral struct {
	*Builder
	d                       SVD
	values, inverse, paired onnx.Value
	measured                onnx.Value
}

func newSpectral(b *Builder, s Settings) *spectral {
	d := b.SVD()
	values := d.Values(s.Number("zero"))
	return &spectral{Builder: b, d: d, values: values, inverse: d.Inverse(values), paired: d.Paired(), measured: d.Ut(b.in.measurement)}
}

// spread returns √(level² − (weight·σ_y/s)²) where it is real, else 0.
func (q *spectral) spread(level onnx.Value, weight float32) onnx.Value {
	of := q.Mul(q.Mul(q.inverse, q.Planned("sigma")), q.Scalar(weight))
	return q.Sqrt(q.Max(q.Minus(q.Mul(level, level), q.Mul(of, of)), q.Scalar(0)))
}

// start returns x_T from noise.
func (q *spectral) start(s Settings, noise onnx.Value) onnx.Value {
	level, drawn := q.Planned("level"), q.d.Vt(noise)
	known := q.larger(q.Mul(q.values, level), q.Planned("sigma"))
	from := q.Add(q.Mul(q.measured, q.inverse), q.Mul(drawn, q.spread(level, 1)))
	unknown := q.Mul(drawn, level)
	if s.Word("start") == startFilled {
		unknown = q.Add(unknown, q.d.Vt(q.Filled()))
	}
	return q.d.V(q.Div(q.choose(known, from, unknown), q.Planned("scale")))
}

// next returns x_s.
func (q *spectral) next(z, noise onnx.Value, eta, etaB float64) onnx.Value {
	level, sigma := q.Planned("next_level"), q.Planned("sigma")
	zt, drawn := q.d.Vt(z), q.d.Vt(q.Draw("noise"))
	kept, fresh := q.Scalar(float32(math.Sqrt(1-eta*eta))), q.Mul(drawn, q.Scalar(float32(eta)))

	// Vᵀ·ε_θ, or the noise of y where it is the less noisy.
	scaled := q.Mul(q.values, level)
	less := q.Mul(q.paired, q.larger(sigma, scaled))
	residual := q.Mul(q.Minus(q.measured, q.Mul(q.values, zt)), q.Planned("inverse_sigma"))
	known := q.choose(less, residual, q.d.Vt(noise))
	spectrum := q.Add(zt, q.Mul(q.Add(q.Mul(known, kept), fresh), level))

	from := q.Add(q.Mul(zt, q.Scalar(float32(1-etaB))), q.Mul(q.Mul(q.measured, q.inverse), q.Scalar(float32(etaB))))
	from = q.Add(from, q.Mul(drawn, q.spread(level, float32(etaB))))
	spectrum = q.choose(q.larger(scaled, sigma), from, spectrum)
	return q.Mul(q.d.V(spectrum), q.Planned("next_alpha"))
}

// choose returns a where which is 1, and c where it is 0.
func (q *spectral) choose(which, a, c onnx.Value) onnx.Value {
	return q.Add(c, q.Mul(which, q.Minus(a, c)))
}
