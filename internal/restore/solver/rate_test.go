package solver

import (
	"maps"
	"math"
	"slices"
	"testing"

	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/prior"
	"ddiff/restore/method"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// steady is a method with all steps at one time, with changed scalars and without added noise.
type steady struct {
	method.Method
	time, steps int
	scalars     map[string]float64
}

func (m steady) Plan(s method.Settings, schedule prior.Schedule, image operator.Shape) ([]method.Step, error) {
	plan, err := m.Method.Plan(s, schedule, image)
	if err != nil {
		return nil, err
	}
	step := plan[len(plan)-1]
	step.Time, step.Std = m.time, nil
	maps.Copy(step.Scalars, m.scalars)
	return slices.Repeat([]method.Step{step}, m.steps), nil
}

// With a Gaussian prior of variance s² and a coefficient with singular value a, a step at a fixed time is a linear map of the state. The fixed points and
// factors are those of docs/methods/ddiff.md, with d = s²/(s² + τ²), k = ρ/(a² + ρ) and h = 2·γ·a². A map of two variables has the trace p and the
// determinant q, so that the distances e to the fixed point after three steps have e₃ = p·e₂ − q·e₁.
func TestStepsWithAGaussianPrior(t *testing.T) {
	t.Parallel()
	const at, rho, zeta, gamma, gain = 80, 1.0, 0.64, 0.2, 1.5
	e := newExample(t, operator.InpaintRandom, 16)
	alpha := e.prior.Schedule.AlphaBar[at]
	root, tau2 := math.Sqrt(alpha), (1-alpha)/alpha
	kept := math.Sqrt(1 - zeta)
	for _, c := range []struct {
		name, method string
		values       map[string]parameter.Value
		scalars      map[string]float64
		scale        float64 // of the answer
		// step returns the fixed point of the answer over its scale, trace and determinant.
		step func(a, y, s2, d float64) (fixed, trace, determinant float64)
	}{
		{
			"exact", "ddiff", map[string]parameter.Value{"data_step": parameter.Word("exact")},
			map[string]float64{"rho": rho, "dual": 1, "next": root}, root,
			func(a, y, s2, d float64) (float64, float64, float64) { // of x + u, where u = x·τ²/s²
				k := rho / (a*a + rho)
				return a * y / (a*a + rho*tau2/s2) / d, k*d + (1-k)*(1-d), 0
			},
		},
		{
			"exact with a gain", "ddiff", map[string]parameter.Value{"data_step": parameter.Word("exact"), "dual_gain": parameter.Number(gain)},
			map[string]float64{"rho": rho, "dual": 1, "next": root}, root,
			func(a, y, s2, d float64) (float64, float64, float64) { // of x + c·u, where u = x·τ²/(c·s²)
				k := rho / (a*a + rho)
				return a * y / (a*a + rho*tau2/(gain*s2)) / d, k*d + (1-k)*(1-gain*d), 0
			},
		},
		{
			"gradient", "ddiff", map[string]parameter.Value{
				"data_step": parameter.Word("gradient"), "gradient": parameter.Word(method.GradientSquared), "sigma_rule": parameter.Word("full"),
			},
			map[string]float64{"gamma": gamma, "next_of_x": root, "next_of_u": root, "next_of_xt": 0}, root,
			func(a, y, s2, d float64) (float64, float64, float64) {
				h := 2 * gamma * a * a
				return a * y / (a*a + (1-h)*tau2/(2*gamma*s2)) / d, d*(1-h) + h, d * h
			},
		},
		{
			"half-quadratic splitting", "dpir", nil,
			map[string]float64{"rho": rho, "of_x": root, "of_y": 0}, 1,
			func(a, y, s2, d float64) (float64, float64, float64) {
				return a * y / (a*a + rho*tau2/(s2+tau2)), rho / (a*a + rho) * d, 0
			},
		},
		{
			"DiffPIR", "diffpir", nil,
			map[string]float64{"rho": rho, "start_of_x": 1, "start_of_y": 0, "next_of_x": root * (1 - kept), "next_of_xt": kept}, root,
			func(a, y, s2, d float64) (float64, float64, float64) {
				return a * y / (a*a + rho*tau2/(s2+tau2)), kept + (1-kept)*rho/(a*a+rho)*d, 0
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := resolve(t, method.Request{Method: c.method, Preset: "natural", Task: e.op.Task, Steps: 8, Values: unmirrored(c.values)})
			var x [3][]float32
			for i := range x {
				run := planRun(t, steady{named(t, c.method), at, i + 1, c.scalars}, s, e.prior, e.op)
				x[i] = solve(t, compile(t, onnxtest.Runtime(t), run, 1, Build{}), []Problem{e.problem})[0].X
			}
			far := 0
			for i, s2 := range e.variance {
				a := e.a.At(i, i)
				fixed, trace, determinant := c.step(a, e.y.AtVec(i), s2, s2/(s2+tau2))
				distance := func(step int) float64 { return float64(x[step][i])/c.scale - fixed }
				if want := trace*distance(1) - determinant*distance(0); math.Abs(distance(2)-want) > 2e-6 {
					t.Fatalf("coefficient %d with a = %g: %.7f, %.7f and %.7f from the fixed point, want %.7f at last", i, a, distance(0), distance(1), distance(2), want)
				}
				if math.Abs(distance(1)) > 1e-4 {
					far++
				}
			}
			if far < 60 {
				t.Errorf("only %d coefficients are off the fixed point before the last step: the factors say nothing", far)
			}
		})
	}
}
