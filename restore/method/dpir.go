package method

import (
	"math"
	"slices"

	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// DPIR is plug-and-play restoration by half-quadratic splitting with a denoiser: the exact data step of [ddiff] without a dual variable. From an image
// x made from y, see [lateStart], each step at time t is
//
//	z = the prior's clean image of √ᾱ_t·x, clipped to [−1, 1]
//	x = argmin_x ‖y − A(x)‖² + ρ_t·‖x − z‖², with ρ_t = λ·(σ/2)²·ᾱ_t/(1−ᾱ_t)
//
// and the answer is x. No random draw enters. The publication's denoiser was trained for this; here the prior of a diffusion model stands in for it, at
// the noise levels of its schedule, at times of equal distances. The publication's levels are a logarithmic sequence that ends at the measurement's
// noise, its λ is 0.92 in the terms used here, and super-resolution begins with a bicubic enlargement, here with A⁺·y.
type dpir struct{}

func (dpir) Info() Info {
	return Info{
		About: "plug-and-play restoration by half-quadratic splitting and a denoiser",
		Citation: "K. Zhang, Y. Li, W. Zuo, L. Zhang, L. Van Gool, R. Timofte: Plug-and-Play Image Restoration with Deep Denoiser Prior, " +
			"IEEE TPAMI 44(10), 2022",
		Parameters: slices.Concat(minimum(), lateStart(), recovery(), parameter.List{assumedNoise(), Mirror()}),
		NoiseStd:   "noise_std",
		Steps:      50, Rows: presetRows("dpir"),
		State: []Tensor{{Name: "x"}},
		Curves: []Curve{
			{Name: "rho", About: "weight ρ_t of the prior in the data step", Scalar: "rho"},
			{Name: "data_norm", About: "‖y − A(z)‖ over the observed entries"},
			{Name: "primal_norm", About: "‖x − z‖"},
		},
	}
}

func (dpir) Plan(s Settings, schedule Schedule, _ operator.Shape) ([]Step, error) {
	levels, err := lateLevels(s, schedule)
	if err != nil {
		return nil, err
	}
	var out []Step
	for i, l := range levels {
		st := Step{Time: l.Time, Scalars: map[string]float64{"rho": proximalWeight(s, l, i), "of_x": math.Sqrt(l.Alpha), "of_y": 0}}
		if i == 0 {
			st.Scalars["of_x"], st.Scalars["of_y"] = 0, math.Sqrt(l.Alpha)
		}
		out = append(out, st)
	}
	return out, nil
}

func (dpir) Step(b *Builder, s Settings) Next {
	z := b.Clean(b.Add(b.Mul(b.State("x"), b.Planned("of_x")), b.Mul(b.begin(s), b.Planned("of_y"))))
	change, dataNorm := b.minimum(s, z)
	return Next{
		State:  map[string]onnx.Value{"x": b.Add(z, change)},
		Curves: map[string]onnx.Value{"data_norm": dataNorm, "primal_norm": b.Norm(change)},
	}
}
