package method

import (
	"fmt"

	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// Flower follows the straight path x_t = (1 − t)·x + t·ε of flow matching and refines its destination with the measurement. From x_1 ~ N(0, I), each step
// from t to s = t − 1/n is
//
//	z   = the prior's clean image of x_t at t, not clipped
//	x   = argmin_x ‖y − A(x)‖²/(2σ²) + ‖x − z‖²/(2ν²), with ν² = t²/((1 − t)² + t²) and σ being noise_std
//	x   = x + gamma·N(0, (AᵀA/σ² + I/ν²)⁻¹)
//	x_s = (1 − s)·x + s·ε
//
// and the answer is x. ν² is the variance of x given x_t where x ~ N(0, I). The minimum is [Builder.Proximal].
//
// The time of the paper and the code is 1 − t. The code has 50 iterations of conjugate gradients for the minimum, and 100 for that and the draw with gamma 1. Both are
// exact here for an operator with a decomposition; others have no draw. Several runs, which the code can average, are the campaign's. The
// code's networks take real times; here the network is evaluated at the time of the nearest noise level, and the levels themselves are exact. The
// paper has linear operators; for others the minimum is a step of Gauss and Newton.
type flower struct{}

func (flower) Info() Info {
	return Info{
		About:    "flow whose destination is refined with the measurement, by the weight of a Gaussian posterior",
		Citation: "M. Pourya, B. El Rawas, M. Unser: Flower: A Flow-Matching Solver for Inverse Problems, ICLR 2026",
		Parameters: parameter.List{
			{Name: "noise_std", Min: 0.0001, Max: 1, Default: 0.05, Unit: "units of y",
				Doc: "standard deviation σ of the measurement noise that the method assumes; the campaign's sigma unless it is set"},
			{Name: "gamma", Max: 1, Doc: "share of the posterior's standard deviation that is drawn around the minimum: 0 none, 1 all, for operators with a decomposition"},
			{Name: "cg_steps", Min: 1, Max: 100, Integer: true, Default: 20,
				Doc: "iterations of conjugate gradients in the data step, for operators without a decomposition"},
			Mirror(),
		},
		NoiseStd: "noise_std",
		Steps:    100, Rows: presetRows("flower"),
		State: []Tensor{{Name: "x", Noise: true}},
		Draws: []Draw{{Name: "noise"}, {Name: "posterior"}},
		Curves: []Curve{
			{Name: "t", About: "share t of the noise in x_t", Scalar: "t"},
			{Name: "data_norm", About: "‖y − A(z)‖ over the observed entries"},
			{Name: "primal_norm", About: "‖x − z‖"},
		},
	}
}

func (flower) Plan(s Settings, schedule Schedule, _ operator.Shape) ([]Step, error) {
	var out []Step
	for i, p := range interpolants(schedule, s.Steps) {
		st := p.step(s.Steps-1-i, 1)
		ratio := s.Number("noise_std") / p.t
		st.Scalars["rho"] = ratio * ratio * ((1-p.t)*(1-p.t) + p.t*p.t)
		st.Scalars["scale"], st.Scalars["next"] = p.scale, 1-p.next
		st.Std["noise"], st.Std["posterior"] = p.next, s.Number("gamma")
		out = append(out, st)
	}
	return out, nil
}

func (flower) Step(b *Builder, s Settings) Next {
	z := b.destination(b.Mul(b.State("x"), b.Planned("scale")), 0)
	change, norm := b.Proximal(z, b.Planned("rho"), s.Number("noise_std"), int(s.Number("cg_steps")), 0)
	if s.Number("gamma") > 0 {
		of, err := b.run.Operator.SVD()
		switch {
		case err != nil:
			panic(graphError{fmt.Errorf("%w gamma: the draw needs a decomposition: %w; set gamma: 0", ErrSetting, err)})
		case b.run.Weighted:
			panic(graphError{fmt.Errorf("%w gamma: there is no draw where pixels of the measurement are left out; set gamma: 0", ErrSetting)})
		}
		change = b.Add(change, SVD{b, of}.spread(b.Draw("posterior"), b.Planned("rho"), s.Number("noise_std")))
	}
	next := b.Add(b.Mul(b.Add(z, change), b.Planned("next")), b.Draw("noise"))
	return Next{
		State:  map[string]onnx.Value{"x": next},
		Curves: map[string]onnx.Value{"data_norm": norm, "primal_norm": b.Norm(change)},
	}
}
