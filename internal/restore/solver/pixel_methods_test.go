package solver

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/prior"
	"ddiff/restore/method"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// example is a small problem with independent Gaussian pixels, whose every step has a closed form: A is a dense matrix, and
// the prior's noise is σ·x/(ᾱ·variance + σ²).
type example struct {
	a        *mat.Dense
	y        *mat.VecDense // zero where nothing is observed
	variance []float64
	prior    *prior.Prior
	op       *operator.Operator
	problem  Problem
}

func newExample(t *testing.T, task string, side int) example {
	t.Helper()
	shape := operator.Shape{Channels: 1, Height: side, Width: side}
	n := shape.Size()
	variance, wide := make([]float32, n), make([]float64, n)
	for i := range variance {
		wide[i] = 0.02 + 0.03*float64(i%7)/6
		variance[i] = float32(wide[i])
	}
	op := newOperator(t, task, shape)
	key := noise.Key{11, 3}
	draw := encoded(t, op, key)
	rows := columns(t, op, draw)
	a := mat.NewDense(len(rows), n, slices.Concat(rows...))
	truth := make([]float32, n)
	noise.Normal(truth, key, noise.Start, 9, 0.15)
	y := make([]float32, len(rows))
	noise.Normal(y, key, noise.Measurement, 0, 0.05)
	clean := mat.NewVecDense(len(rows), nil)
	clean.MulVec(a, vector(truth))
	for i := range y {
		y[i] += float32(clean.AtVec(i))
	}
	observed := vector(y)
	for i := range y {
		if mat.Norm(a.RowView(i), 2) == 0 {
			observed.SetVec(i, 0)
		}
	}
	return example{a, observed, wide, gaussianPrior(t, 1, shape, variance), op, Problem{Y: y, Draw: draw, Key: key}}
}

func vector(v []float32) *mat.VecDense {
	return mat.NewVecDense(len(v), float64s(v))
}

// noise returns the prior's noise of x at a level.
func (e example) noise(x *mat.VecDense, alpha float64) *mat.VecDense {
	out := mat.NewVecDense(x.Len(), nil)
	for i := range x.Len() {
		out.SetVec(i, math.Sqrt(1-alpha)*x.AtVec(i)/(alpha*e.variance[i]+1-alpha))
	}
	return out
}

// clean returns the prior's clean image.
func (e example) clean(x *mat.VecDense, alpha float64) *mat.VecDense {
	return combine(1/math.Sqrt(alpha), x, -math.Sqrt(1-alpha)/math.Sqrt(alpha), e.noise(x, alpha))
}

// draw returns the noise of the step at a time, or of the start.
func (e example) draw(purpose noise.Purpose, time int) *mat.VecDense {
	out := make([]float32, len(e.variance))
	noise.Normal(out, e.problem.Key, purpose, uint32(time), 1)
	return vector(out)
}

// gradient is Aᵀ(A·x − y).
func (e example) gradient(x *mat.VecDense) *mat.VecDense {
	r, g := mat.NewVecDense(e.y.Len(), nil), mat.NewVecDense(x.Len(), nil)
	r.MulVec(e.a, x)
	r.SubVec(r, e.y)
	g.MulVec(e.a.T(), r)
	return g
}

// combine returns a·x + b·y.
func combine(a float64, x *mat.VecDense, b float64, y *mat.VecDense) *mat.VecDense {
	out := mat.NewVecDense(x.Len(), nil)
	out.ScaleVec(a, x)
	out.AddScaledVec(out, b, y)
	return out
}

// decompose returns U, V and the singular values of A, with zeros up to the number of columns.
func (e example) decompose(t *testing.T) (u, v mat.Dense, s []float64) {
	t.Helper()
	var d mat.SVD
	if !d.Factorize(e.a, mat.SVDFull) {
		t.Fatal("no singular value decomposition")
	}
	d.UTo(&u)
	d.VTo(&v)
	s = make([]float64, len(e.variance))
	copy(s, d.Values(nil))
	for i, x := range s {
		if x < 1e-6 { // masks
			s[i] = 0
		}
	}
	return u, v, s
}

// pseudoInverse returns A⁺·y.
func (e example) pseudoInverse(t *testing.T) *mat.VecDense {
	t.Helper()
	u, v, s := e.decompose(t)
	c, full, x := mat.NewVecDense(e.y.Len(), nil), mat.NewVecDense(len(s), nil), mat.NewVecDense(len(s), nil)
	c.MulVec(u.T(), e.y)
	for i := range c.Len() {
		full.SetVec(i, c.AtVec(i)/s[i])
	}
	x.MulVec(&v, full)
	return x
}

// solve runs a method with changed parameters.
func (e example) solve(t *testing.T, name string, steps int, values map[string]parameter.Value) []float32 {
	t.Helper()
	s := resolve(t, method.Request{Method: name, Preset: "natural", Task: e.op.Task, Steps: steps, Values: unmirrored(values)})
	answers := solve(t, newSolver(t, e.prior, e.op, s, 1), []Problem{e.problem})
	return answers[0].X
}

// flat is an image of one grey, which is what fills the lost pixels of one.
func (e example) flat() *mat.VecDense {
	out := make([]float32, len(e.variance))
	for i := range out {
		out[i] = 0.3
	}
	return vector(out)
}

// flatten makes the measurement of a masked operator one of flat, without noise.
func (e example) flatten() {
	e.y.MulVec(e.a, e.flat())
	for i := range e.problem.Y {
		e.problem.Y[i] = 0.3
	}
}

func wantClose(t *testing.T, got []float32, want *mat.VecDense) {
	t.Helper()
	for i, x := range got {
		if d := math.Abs(float64(x) - want.AtVec(i)); !(d <= 2e-4) {
			t.Fatalf("pixel %d: %.6f, in closed form %.6f", i, x, want.AtVec(i))
		}
	}
}

// DDRM with a Gaussian prior is its formula on the coefficients of a dense decomposition.
func TestDDRMInClosedForm(t *testing.T) {
	t.Parallel()
	const steps = 8
	for _, task := range []string{operator.SuperResolution, operator.GaussianDeblur, operator.InpaintRandom} {
		for _, c := range []struct {
			eta, etaB, sigma float64
			start            string
		}{{0.85, 1, 0.05, ""}, {0.3, 0.4, 0.2, ""}, {0.85, 1, 0, ""}, {0.85, 1, 0.05, "noise"}, {0.3, 0.4, 0.2, "filled"}} { // "": from the last time
			if c.start == "filled" && task != operator.InpaintRandom {
				continue
			}
			t.Run(fmt.Sprint(task, c), func(t *testing.T) {
				t.Parallel()
				e, begin := newExample(t, task, 16), 999
				if c.start == "filled" {
					e.flatten()
				}
				u, v, s := e.decompose(t)
				n, alphas := len(s), e.prior.Schedule.AlphaBar
				spectrum := func(x *mat.VecDense) []float64 {
					out := mat.NewVecDense(n, nil)
					out.MulVec(v.T(), x)
					return out.RawVector().Data
				}
				measured := make([]float64, n)
				uty := mat.NewVecDense(e.y.Len(), nil)
				uty.MulVec(u.T(), e.y)
				copy(measured, uty.RawVector().Data)
				image := func(c []float64) *mat.VecDense {
					out := mat.NewVecDense(n, nil)
					out.MulVec(&v, mat.NewVecDense(n, c))
					return out
				}
				var x *mat.VecDense
				if c.start != "" {
					begin = 200
				}
				for k := range steps {
					at := (steps - 1 - k) * ((begin + 1) / steps)
					alpha, next := alphas[at], 1.0
					if k < steps-1 {
						next = alphas[at-(begin+1)/steps]
					}
					if k == 0 {
						level, scale := math.Sqrt((1-alpha)/alpha), math.Sqrt(alpha)
						if c.start == "" {
							scale = 1 / level
						}
						start, filled := spectrum(e.draw(noise.Start, 0)), spectrum(e.flat())
						for i := range start {
							switch {
							case s[i]*level > c.sigma:
								start[i] = (measured[i]/s[i] + math.Sqrt(level*level-c.sigma*c.sigma/s[i]/s[i])*start[i]) * scale
							case c.start == "filled":
								start[i] = (filled[i] + level*start[i]) * scale
							default:
								start[i] *= level * scale
							}
						}
						x = image(start)
					}
					z, eps, drawn := spectrum(e.clean(x, alpha)), spectrum(e.noise(x, alpha)), spectrum(e.draw(noise.Step, at))
					level := math.Sqrt((1 - next) / next)
					for i := range z {
						switch kept := math.Sqrt(1-c.eta*c.eta) * level; {
						case s[i]*level > c.sigma:
							spread := math.Sqrt(level*level - c.etaB*c.etaB*c.sigma*c.sigma/s[i]/s[i])
							z[i] = (1-c.etaB)*z[i] + c.etaB*measured[i]/s[i] + spread*drawn[i]
						case s[i] > 0 && s[i]*level < c.sigma:
							z[i] += kept*(measured[i]-s[i]*z[i])/c.sigma + c.eta*level*drawn[i]
						default:
							z[i] += kept*eps[i] + c.eta*level*drawn[i]
						}
					}
					x = image(z)
					x.ScaleVec(math.Sqrt(next), x)
				}
				values := map[string]parameter.Value{
					"eta": parameter.Number(c.eta), "eta_b": parameter.Number(c.etaB), "noise_std": parameter.Number(c.sigma), "zero": parameter.Number(0),
				}
				if c.start != "" {
					values["start_at"], values["t_start"], values["start"] = parameter.Word("time"), parameter.Number(200), parameter.Word(c.start)
				}
				wantClose(t, e.solve(t, "ddrm", steps, values), x)
			})
		}
	}
}

// DiffPIR with a Gaussian prior: its data step is the solution of a linear system, or a bounded gradient step where the operator
// has no decomposition and conjugate gradients are not asked for.
func TestDiffPIRInClosedForm(t *testing.T) {
	t.Parallel()
	const steps, zeta, sigma, bound = 6, 0.4, 0.1, 0.5
	for _, c := range []struct {
		task, answer    string
		cgSteps, lambda float64
		late            bool
	}{
		{operator.SuperResolution, "x", 0, 3, false}, {operator.GaussianDeblur, "x_t", 0, 3, false}, {operator.InpaintRandom, "x_t", 5, 3, false},
		{operator.MotionDeblur, "x_t", 0, 3, false}, {operator.MotionDeblur, "x", 60, 3e4, false}, // with λ 3 the iterations do not converge in float32
		{operator.InpaintRandom, "x", 0, 3, true},
	} {
		task, lambda := c.task, c.lambda
		t.Run(fmt.Sprint(task, " ", c.answer, " ", c.cgSteps, " ", c.late), func(t *testing.T) {
			t.Parallel()
			e := newExample(t, task, 16)
			n, alphas := len(e.variance), e.prior.Schedule.AlphaBar
			times := []int{999, 552, 367, 225, 105, 0} // 999 − ⌊1000·√(i/5)⌋
			values := map[string]parameter.Value{
				"lambda": parameter.Number(lambda), "zeta": parameter.Number(zeta), "noise_std": parameter.Number(sigma), "gamma_max": parameter.Number(bound),
				"cg_steps": parameter.Number(c.cgSteps), "answer": parameter.Word(c.answer),
			}
			if c.late {
				times = []int{120, 66, 44, 27, 12, 0} // 120 − ⌊121·√(i/5)⌋
				values["start_at"], values["t_start"], values["start"] = parameter.Word("time"), parameter.Number(120), parameter.Word("filled")
				e.flatten()
			}
			rough := mat.VecDenseCopyOf(e.y)
			var left mat.Dense
			left.Mul(e.a.T(), e.a)
			if task == operator.SuperResolution {
				rough = e.pseudoInverse(t)
			}
			for i := range n {
				if task == operator.InpaintRandom && e.a.At(i, i) == 0 {
					rough.SetVec(i, -1)
				}
			}
			if c.late {
				rough = e.flat()
			}
			x := combine(math.Sqrt(alphas[times[0]]), rough, math.Sqrt(1-alphas[times[0]]), e.draw(noise.Start, 0))
			for k, at := range times {
				if k == steps-1 && c.answer == "x_t" {
					break // the last step has no effect
				}
				alpha := alphas[at]
				rho := lambda * sigma * sigma / 4 * alpha / (1 - alpha)
				z := e.clean(x, alpha)
				if task == operator.MotionDeblur && c.cgSteps == 0 {
					z = combine(1, z, -2*min(bound, 0.5/rho), e.gradient(z))
				} else {
					right, system := mat.NewVecDense(n, nil), mat.DenseCopyOf(&left)
					right.MulVec(e.a.T(), e.y)
					right.AddScaledVec(right, rho, z)
					for i := range n {
						system.Set(i, i, system.At(i, i)+rho)
					}
					var solved mat.VecDense
					var lu mat.LU
					lu.Factorize(system)
					must(t, lu.SolveVecTo(&solved, false, right))
					z = &solved
				}
				if k == steps-1 {
					x = z
					break
				}
				next := alphas[times[k+1]]
				eps := combine(1/math.Sqrt(1-alpha), x, -math.Sqrt(alpha)/math.Sqrt(1-alpha), z)
				fresh := combine(math.Sqrt((1-next)*(1-zeta)), eps, math.Sqrt((1-next)*zeta), e.draw(noise.Step, at))
				x = combine(math.Sqrt(next), z, 1, fresh)
			}
			wantClose(t, e.solve(t, "diffpir", steps, values), x)
		})
	}
}

// DAPS and RED-diff begin with a filled image. With step sizes of nearly 0, a step of DAPS is the ODE alone, here an Euler step of a Gaussian prior, and
// the answer of RED-diff is its start.
func TestFilledStart(t *testing.T) {
	t.Parallel()
	e := newExample(t, operator.InpaintRandom, 16)
	e.flatten()
	start := map[string]parameter.Value{"start": parameter.Word("filled"), "lr": parameter.Number(1e-12)}
	wantClose(t, e.solve(t, "reddiff", 2, start), e.flat())

	const high, low, end = 0.5, 0.1, 0.01
	between := math.Pow((math.Pow(high, 1.0/7)+math.Pow(low, 1.0/7))/2, 7)
	start["sigma_max"], start["sigma_min"], start["ode_end"] = parameter.Number(high), parameter.Number(low), parameter.Number(end)
	start["ode_steps"], start["chain_steps"] = parameter.Number(1), parameter.Number(1)
	x := combine(1, e.flat(), high, e.draw(noise.Start, 0))
	for _, level := range []float64{high, between} {
		at := 0
		for t, alpha := range e.prior.Schedule.AlphaBar {
			if distance := func(a float64) float64 { return math.Abs(math.Log(math.Sqrt((1-a)/a) / level)) }; distance(alpha) < distance(e.prior.Schedule.AlphaBar[at]) {
				at = t
			}
		}
		scaled := combine(1/math.Sqrt(1+level*level), x, 0, x)
		clean := combine(1, x, -level, e.noise(scaled, e.prior.Schedule.AlphaBar[at]))
		x = combine(end/level, x, 1-end/level, clean)
		if level == high {
			x = combine(1, x, between, e.draw(noise.Step, at))
		}
	}
	wantClose(t, e.solve(t, "daps", 2, start), x)
}

// With a Gaussian prior, dual ascent with the scaled dual variable converges to the minimum of ‖y − A(x)‖² + λ·(σ/2)²·Σx²/variance, the posterior
// mean for noise of the variance λ·(σ/2)². Half-quadratic splitting does not in as many steps.
func TestDualAscentFindsPosteriorMean(t *testing.T) {
	t.Parallel()
	const lambda, sigma = 2, 0.1
	e := newExample(t, operator.GaussianDeblur, 16)
	n := len(e.variance)
	var system mat.Dense
	system.Mul(e.a.T(), e.a)
	for i, v := range e.variance {
		system.Set(i, i, system.At(i, i)+lambda*sigma*sigma/4/v)
	}
	right, mean := mat.NewVecDense(n, nil), mat.NewVecDense(n, nil)
	right.MulVec(e.a.T(), e.y)
	var lu mat.LU
	lu.Factorize(&system)
	must(t, lu.SolveVecTo(mean, false, right))
	far := map[string]float64{}
	for _, name := range []string{"ddiff", "dpir"} {
		values := map[string]parameter.Value{
			"lambda": parameter.Number(lambda), "noise_std": parameter.Number(sigma), "start_at": parameter.Word("time"), "t_start": parameter.Number(120),
		}
		if name == "ddiff" {
			values["data_step"] = parameter.Word("exact")
		}
		far[name] = mat.Norm(combine(1, vector(e.solve(t, name, 40, values)), -1, mean), 2) / mat.Norm(mean, 2)
	}
	t.Logf("distance to the posterior mean, relative: %v", far)
	if !(far["ddiff"] < 1e-4) || !(far["dpir"] > 1e-3) {
		t.Errorf("relative distances to the posterior mean: %v; want below 1e-4 with the dual variable, above 1e-3 without", far)
	}
}
