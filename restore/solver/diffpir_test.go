package solver

import (
	"math"
	"testing"

	"ddiff/restore/method"
	"ddiff/restore/onnx/onnxtest"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
	"ddiff/restore/prior"
)

// conditioned is DDiff-HQS under conditions (i) to (iii) of the paper's appendix "Relating DDiff and DiffPIR"; condition
// (iv), no dual updates, is DDiff-HQS itself.
type conditioned struct {
	method.Method
	zeta, lambda, sigma float64
}

func (c conditioned) Plan(s method.Settings, schedule prior.Schedule, _ operator.Shape) ([]method.Step, error) {
	levels, err := method.Levels(schedule, s.Steps)
	var out []method.Step
	for _, l := range levels {
		std := math.Sqrt(c.zeta * (1 - l.Next))                                                                         // (i)
		gamma := (1 - l.Alpha) / l.Alpha / (2 * c.lambda * c.sigma * c.sigma)                                           // (ii)
		k := math.Sqrt(max(0, 1-l.Next-std*std)) / math.Sqrt(1-l.Alpha)                                                 // DDiff's weight of ε̂
		out = append(out, method.Step{Time: l.Time, Std: map[string]float64{"noise": std}, Scalars: map[string]float64{ // (iii): no t0
			"gamma": gamma, "next_of_x": math.Sqrt(l.Next) - k*math.Sqrt(l.Alpha), "next_of_xt": k, "next_of_u": 0,
			"rho": 1 / (2 * gamma), "start_of_x": 1, "start_of_y": 0,
		}})
	}
	return out, err
}

// paperDiffPIR is DiffPIR with the start of the paper, from noise alone. With the answer x it also ends as in the paper.
type paperDiffPIR struct{ method.Method }

func (p paperDiffPIR) Plan(s method.Settings, schedule prior.Schedule, image operator.Shape) ([]method.Step, error) {
	plan, err := p.Method.Plan(s, schedule, image)
	if err != nil {
		return nil, err
	}
	plan[0].Scalars["start_of_x"], plan[0].Scalars["start_of_y"] = 1, 0
	return plan, nil
}

// TestDiffPIRIsDDiffHQS: under the paper's conditions, DDiff-HQS gives the images and curves of DiffPIR, with the gradient step and with
// the solution of the data term, by decomposition or by conjugate gradients.
func TestDiffPIRIsDDiffHQS(t *testing.T) {
	t.Parallel()
	const steps, lambda, sigma = 20, 4e5, 0.05 // a large λ: without the bound, γ_t at the first steps is then at most 12
	p := bundled(t)
	for _, c := range []struct {
		task         string
		zeta         float64
		theirs, ours string
	}{
		{operator.GaussianDeblur, 0, "gradient", "gradient"}, {operator.GaussianDeblur, 0.3, "gradient", "gradient"},
		{operator.GaussianDeblur, 1, "gradient", "gradient"}, {operator.GaussianDeblur, 0.3, "analytic", "proximal"},
		{operator.MotionDeblur, 0.3, "analytic", "proximal"}, {operator.NonlinearDeblur, 0.3, "analytic", "proximal"},
	} {
		op := newOperator(t, c.task, small)
		probs := problems(t, op, 2, sigma)
		zeta := c.zeta
		settings := with(resolve(t, method.Request{
			Method: "diffpir", Preset: "natural", Task: op.Task, Steps: steps, Values: unmirrored(map[string]parameter.Value{"cg_steps": parameter.Number(5)}),
		}),
			"zeta", zeta, "lambda", lambda, "gamma_max", 1e6, "data_step", c.theirs, "skip_type", "uniform", "answer", "x",
			"noise_std", 2*sigma) // the method halves it, as the authors' code does
		paper := planRun(t, paperDiffPIR{method.DiffPIR()}, settings, p, op)
		want := solve(t, compile(t, onnxtest.Runtime(t), paper, 2, Build{}), probs)
		hqs := with(resolve(t, method.Request{Method: "ddiff_hqs", Preset: "gradient", Task: op.Task, Steps: steps}), "gradient", method.GradientSquared)
		if c.ours == "proximal" {
			hqs = resolve(t, method.Request{Method: "ddiff_hqs", Preset: "natural", Task: op.Task, Steps: steps, Values: unmirrored(map[string]parameter.Value{
				"sigma_rule": parameter.Word("ddpm"), "cg_steps": parameter.Number(5),
			})})
		}
		run := planRun(t, conditioned{method.DDiffHQS(), zeta, lambda, sigma}, hqs, p, op)
		got := solve(t, compile(t, onnxtest.Runtime(t), run, 2, Build{}), probs)
		for i := range want {
			if d := maxAbs(got[i].X, want[i].X); !(d <= 1e-4) {
				t.Errorf("%+v: image %d differs by %.2g", c, i, d)
			}
			for _, curve := range want[i].Curves.Curves {
				if curve.Name == "rho" || curve.Name == "gamma" && c.ours == "proximal" {
					continue // DDiff has none
				}
				values := got[i].Curves.Curve(curve.Name)
				if len(values) != steps {
					t.Errorf("%+v: image %d: %d values of %s, want %d", c, i, len(values), curve.Name, steps)
				}
				for k, v := range values {
					if !(math.Abs(v-curve.Values[k]) <= 1e-3*math.Max(1, v)) {
						t.Errorf("%+v: image %d: %s of step %d is %g, want %g", c, i, curve.Name, k+1, curve.Values[k], v)
					}
				}
			}
		}
	}
}
