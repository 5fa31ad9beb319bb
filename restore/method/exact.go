package method

import (
	"math"
	"slices"

	"ddiff/internal/restore/axis"
	"ddiff/restore/onnx"
	"ddiff/restore/parameter"
)

// The exact data step of [ddiff] takes the minimum where the paper's takes one step along the gradient. From an image x_y made from y, see [lateStart],
// and u = 0, each step from time t to the next s is
//
//	z   = the prior's clean image of √ᾱ_t·(x + c·u), clipped to [−1, 1]
//	x   = argmin_x ‖y − A(x)‖² + ρ_t·‖x − (z − u)‖², with ρ_t = λ·(σ/2)²/τ_t² and τ_t² = (1−ᾱ_t)/ᾱ_t
//	u   = (u + x − z)·τ_s²/τ_t²
//
// and the answer is x. u is the scaled dual variable of ADMM, u = τ²·(dual variable) up to a constant: where its scale changes, from t to s, the
// dual variable is to stay (Boyd et al., Distributed Optimization and Statistical Learning via the Alternating Direction Method of Multipliers, 3.4.1).
// After the last step τ_s = 0. With the parameter noise full, the prior's argument is √ᾱ_t·(x + c·u) + √(1−ᾱ_t)·ε. With null_space, x is replaced in it
// by the minimum for z − u + τ_s·ε in place of z − u: of the noise remains what the measurement does not determine.
//
// With the parameter sharpen, α, the last step has v + α·(v − G·v) in place of v = z − u, where G is a blur by a Gaussian of about one pixel, and the weight
// ρ = λ·(σ/2)²/[sharpened]: an unsharp mask whose change of the observed part the data step takes back.

// The values of the parameter noise.
const (
	noiseNone = "none"
	noiseFull = "full"
	noiseNull = "null_space"
)

// sharpened is the variance that the details of a sharpened image are taken to have, in the units of images.
const sharpened = 0.01

// exactParameters are the parameters of the exact data step alone.
func exactParameters() parameter.List {
	return slices.Concat(minimum(), lateStart(), parameter.List{
		{Name: "dual", Max: 1, Open: true, Default: 1, Doc: "factor of the dual variable after a step, beside its scale: 1 keeps it"},
		{Name: "dual_gain", Max: 2, Open: true, Default: 1,
			Doc: "factor c of the dual variable in the prior's argument: above 1 accelerates, and weighs the prior as lambda/c would"},
		{Name: "sharpen", Max: 100, Doc: "amount of the unsharp mask in the last step: above 0 sharper, at a loss of PSNR"},
		{Name: "noise", Choices: []string{noiseNone, noiseFull, noiseNull},
			Doc: "noise in the prior's argument: none, all of the noise level, or of that what the measurement does not determine"},
	})
}

func exactPlan(s Settings, schedule Schedule) ([]Step, error) {
	levels, err := lateLevels(s, schedule)
	if err != nil {
		return nil, err
	}
	noise := s.Word("noise")
	var out []Step
	for i, l := range levels {
		scale := (1 - l.Next) / l.Next / ((1 - l.Alpha) / l.Alpha) // τ_s²/τ_t²
		st := Step{Time: l.Time, Scalars: map[string]float64{
			"rho": proximalWeight(s, l, i), "dual": s.Number("dual") * scale, "next": math.Sqrt(l.Next),
			startOfState: 1, "start_of_y": 0,
		}}
		if amount := s.Number("sharpen"); amount > 0 {
			st.Scalars["sharpen"] = 0
			if i == len(levels)-1 {
				sigma := s.Number("noise_std") / 2
				st.Scalars["sharpen"], st.Scalars["rho"] = amount, max(s.At("lambda", i)*sigma*sigma/sharpened, 1e-30)
			}
		}
		if i == 0 {
			st.Scalars[startOfState], st.Scalars["start_of_y"] = 0, math.Sqrt(l.Alpha)
		}
		switch noise {
		case noiseFull:
			st.Std = map[string]float64{"noise": math.Sqrt(1 - l.Next)}
			if i == 0 {
				st.Scalars[startOfState] = math.Sqrt(1 - l.Alpha)
			}
		case noiseNull:
			st.Std = map[string]float64{"noise": math.Sqrt((1 - l.Next) / l.Next)}
		}
		out = append(out, st)
	}
	return out, nil
}

func exactStep(b *Builder, s Settings) Next {
	xt := b.Add(b.Mul(b.State("x"), b.Planned(startOfState)), b.Mul(b.begin(s), b.Planned("start_of_y")))
	z := b.Clean(xt)
	v := b.Minus(z, b.State("u"))
	if s.Number("sharpen") > 0 {
		v = b.Add(v, b.Mul(b.Minus(v, b.blurred(v)), b.Planned("sharpen")))
	}
	change, _ := b.minimum(s, v) // x − v = u + x − z
	x, u := b.Add(v, change), b.Mul(change, b.Planned("dual"))
	push := u
	if c := s.Number("dual_gain"); c != 1 {
		push = b.Mul(u, b.Scalar(float32(c)))
	}
	next := b.Mul(b.Add(x, push), b.Planned("next"))
	switch s.Word("noise") {
	case noiseFull:
		next = b.Add(next, b.Draw("noise"))
	case noiseNull:
		noisy := b.Add(v, b.Draw("noise"))
		d, _ := b.minimum(s, noisy)
		next = b.Mul(b.Add(b.Add(noisy, d), push), b.Planned("next"))
	}
	return Next{
		State: map[string]onnx.Value{"x": next, "u": u},
		Curves: map[string]onnx.Value{
			"data_norm": b.Norm(b.Residual(z)), "primal_norm": b.Norm(b.Minus(x, z)), "dual_norm": b.Norm(change),
		},
	}
}

// blurred returns images blurred by weights near those of a Gaussian with a standard deviation of one pixel.
func (b *Builder) blurred(x onnx.Value) onnx.Value {
	smooth := axis.NewSeparable(binomial(x.Dims[2]), binomial(x.Dims[3]))
	return smooth.Forward(b.Graph, smooth.Forward(b.Graph, x, x), x)
}
