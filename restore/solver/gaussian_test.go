package solver

import (
	"context"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"ddiff/restore/method"
	"ddiff/restore/noise"
	"ddiff/restore/onnx/onnxtest"
	"ddiff/restore/operator"
	"ddiff/restore/prior"
)

// With independent Gaussian pixels N(0, S) as prior and a linear A everything is known in
// closed form. Held at one noise level τ² = (1−ᾱ)/ᾱ, without added noise and with the full
// rule, DDiff is linearised ADMM with the denoiser D = (I + P)⁻¹, P = τ²·S⁻¹. Its fixed point
// has x = z, u = P·z and u = −γ·∇‖y − A(z − u)‖², that is
//
//	(P + 2γ·AᵀA·(I − P))·z = 2γ·Aᵀy
//
// and as P → 0 with σ² = τ²/(2γ) fixed this is the maximum a posteriori estimate,
// (AᵀA + σ²·S⁻¹)·z = Aᵀy.
func TestGaussianPriorFixedPoint(t *testing.T) {
	t.Parallel()
	shape := operator.Shape{Channels: 1, Height: 16, Width: 16}
	m := shape.Size()
	variance := make([]float32, m)
	for i := range variance {
		variance[i] = 0.02 + 0.03*float32(i%7)/6
	}
	p := gaussianPrior(t, 1, shape, variance)
	for _, task := range []string{operator.GaussianDeblur, operator.InpaintRandom, operator.SuperResolution, operator.MotionDeblur} {
		t.Run(task, func(t *testing.T) {
			t.Parallel()
			op := newOperator(t, task, shape)
			key := noise.Key{11}
			draw := encoded(t, op, key)
			a := columns(t, op, draw)
			truth := make([]float32, m)
			noise.Normal(truth, key, noise.Start, 1, 0.1)
			y := make([]float32, op.MeasurementSize())
			noise.Normal(y, key, noise.Measurement, 0, 0.01)
			for i, v := range apply(a, float64s(truth)) {
				y[i] += float32(v)
			}

			const at, gamma, steps = 2, 0.2, 3000
			cfg := with(config(t, op.Task, 50), "gamma0", gamma, "a", 1, "b", 1, "sigma_rule", "full", "gradient", method.GradientSquared)
			run := planRun(t, held{method.DDiff(), at, steps, []string{"next_of_x", "next_of_u"}, []string{"next_of_xt"}}, cfg, p, op)
			s := compile(t, onnxtest.Runtime(t), run, 1, Build{})
			alpha := p.Schedule.AlphaBar[at]
			got := solve(t, s, []Problem{{Y: y, Draw: draw, Key: key}})
			// The state is √ᾱ·(x + u) = √ᾱ·(I + P)·z.
			tau := (1 - alpha) / alpha
			fixed, mapEstimate := closedForm(a, y, variance, tau, gamma)
			for i := range m {
				pi := tau / float64(variance[i])
				z := float64(got[0].X[i]) / math.Sqrt(alpha) / (1 + pi)
				if !(math.Abs(z-fixed[i]) <= 1e-4) {
					t.Fatalf("pixel %d: %.6f, closed form %.6f", i, z, fixed[i])
				}
				if !(math.Abs(fixed[i]-mapEstimate[i]) <= 0.02) {
					t.Fatalf("pixel %d: fixed point %.4f far from the MAP estimate %.4f", i, fixed[i], mapEstimate[i])
				}
			}
			primal := got[0].Curves.Curve("primal_norm")
			if r := primal[len(primal)-1]; !(r <= 1e-4) {
				t.Errorf("‖x − z‖ is %.2g at the end, want 0", r)
			}
		})
	}
}

// held is a method with all steps at one time, with the full rule and without added noise: the next state is the step's
// clean value times √ᾱ.
type held struct {
	method.Method
	at, steps int
	clean     []string // scalars with √ᾱ
	none      []string // scalars with 0
}

func (h held) Plan(s method.Settings, schedule prior.Schedule, image operator.Shape) ([]method.Step, error) {
	plan, err := h.Method.Plan(s, schedule, image)
	if err != nil {
		return nil, err
	}
	hold := plan[len(plan)-1]
	hold.Time = h.at
	for _, name := range h.clean {
		hold.Scalars[name] = math.Sqrt(schedule.AlphaBar[h.at])
	}
	for _, name := range h.none {
		hold.Scalars[name] = 0
	}
	return slices.Repeat([]method.Step{hold}, h.steps), nil
}

// columns is A as a dense matrix, from the compiled operator.
func columns(t *testing.T, op *operator.Operator, draw []float32) [][]float64 {
	t.Helper()
	f, err := operator.NewForward(onnxtest.Runtime(t), op)
	must(t, err)
	defer f.Close()
	a := make([][]float64, op.MeasurementSize())
	for i := range a {
		a[i] = make([]float64, op.Image.Size())
	}
	e := make([]float32, op.Image.Size())
	for j := range e {
		e[j] = 1
		y, err := f.Apply(context.Background(), e, draw)
		must(t, err)
		for i, v := range y {
			a[i][j] = float64(v)
		}
		e[j] = 0
	}
	return a
}

// closedForm solves for the fixed point and the MAP estimate.
func closedForm(a [][]float64, y, variance []float32, tau, gamma float64) (fixed, mapEstimate []float64) {
	left, right := product(transpose(a), a), product(transpose(a), a)
	rhs := apply(transpose(a), float64s(y))
	sigma2 := tau / (2 * gamma)
	for i, s := range variance {
		for j := range left[i] {
			left[i][j] *= 2 * gamma * (1 - tau/float64(variance[j]))
		}
		left[i][i] += tau / float64(s)
		right[i][i] += sigma2 / float64(s)
	}
	return solveLinear(left, sum(2*gamma, rhs)), solveLinear(right, rhs)
}

// solveLinear solves a·x = b.
func solveLinear(a [][]float64, b []float64) []float64 {
	var x mat.VecDense
	if err := x.SolveVec(mat.NewDense(len(a), len(b), slices.Concat(a...)), mat.NewVecDense(len(b), b)); err != nil {
		panic(err)
	}
	return x.RawVector().Data
}
