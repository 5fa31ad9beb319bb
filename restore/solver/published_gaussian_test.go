package solver

import (
	"math"
	"slices"
	"testing"

	"ddiff/restore/method"
	"ddiff/restore/noise"
	"ddiff/restore/onnx/onnxtest"
	"ddiff/restore/operator"
)

// gaussianProblem is a linear problem with independent Gaussian pixels N(0, variance) as prior, in which every method is plain
// arithmetic.
type gaussianProblem struct {
	run      *method.Run
	variance []float32
	a        [][]float64
	problem  Problem
}

func newGaussianProblem(t *testing.T, name string, steps int, changes ...any) gaussianProblem {
	t.Helper()
	shape := operator.Shape{Channels: 1, Height: 16, Width: 16}
	g := gaussianProblem{variance: make([]float32, shape.Size())}
	for i := range g.variance {
		g.variance[i] = 0.01 + 0.02*float32(i%7)/6
	}
	op := newOperator(t, operator.GaussianDeblur, shape)
	settings := with(resolve(t, method.Request{Method: name, Preset: "natural", Task: op.Task, Steps: steps, Values: unmirrored(nil)}), changes...)
	g.run = newRun(t, gaussianPrior(t, 1, shape, g.variance), op, settings)
	g.a = columns(t, op, nil)
	g.problem = Problem{Key: noise.Key{21}, Y: make([]float32, op.MeasurementSize())}
	noise.Normal(g.problem.Y, g.problem.Key, noise.Measurement, 0, 0.1)
	return g
}

// solve compares the state tensors of a run with those that one step after the other computes in float64.
func (g gaussianProblem) solve(t *testing.T, tolerance float64, step func(i int, st method.Step, state [][]float64)) {
	t.Helper()
	s := compile(t, onnxtest.Runtime(t), g.run, 1, Build{})
	got := []State{s.Start(g.problem.Key)}
	var want [][]float64
	for _, tensor := range got[0].Tensors {
		want = append(want, float64s(tensor.Data))
	}
	err := s.Resume(t.Context(), []Problem{g.problem}, got, make([]Curves, 1), func(made int) error {
		step(made-1, g.run.Steps[made-1], want)
		for k, tensor := range got[0].Tensors {
			worst := 0.0
			for i, v := range tensor.Data {
				worst = max(worst, math.Abs(float64(v)-want[k][i]))
			}
			if !(worst <= tolerance) {
				t.Fatalf("step %d: %s differs by %.2g from the closed form", made, tensor.Name, worst)
			}
		}
		return nil
	})
	must(t, err)
}

// gradient returns Aᵀ(A·x − y) and ‖y − A·x‖.
func (g gaussianProblem) gradient(x []float64) (at []float64, norm float64) {
	at = make([]float64, len(x))
	for i, row := range g.a {
		r := -float64(g.problem.Y[i])
		for j, a := range row {
			r += a * x[j]
		}
		norm += r * r
		for j, a := range row {
			at[j] += a * r
		}
	}
	return at, math.Sqrt(norm)
}

// draw returns the noise of a step.
func (g gaussianProblem) draw(position, time, iteration int, std float64) []float64 {
	out := make([]float32, len(g.variance))
	noise.Normal(out, g.problem.Key, noise.Step.Iteration(iteration), uint32(position<<drawShift|time), std)
	return float64s(out)
}

// alpha returns ᾱ_t.
func (g gaussianProblem) alpha(t int) float64 { return g.run.Prior.Schedule.AlphaBar[t] }

// clean returns the factor of x_t in the posterior mean of pixel i.
func (g gaussianProblem) clean(i int, alpha float64) float64 {
	v := float64(g.variance[i])
	return math.Sqrt(alpha) * v / (alpha*v + 1 - alpha)
}

// With a Gaussian prior, z is linear in x_t where it is not clipped, and its Jacobian the same diagonal matrix.
func TestDPSWithGaussianPrior(t *testing.T) {
	t.Parallel()
	for _, variance := range []string{"posterior", "beta"} {
		g := newGaussianProblem(t, "dps", 8, "scale", 3.0, "variance", variance)
		g.solve(t, 1e-4, func(k int, st method.Step, state [][]float64) {
			x, alpha, next, std := state[0], g.alpha(st.Time), 1.0, 0.0
			if k+1 < len(g.run.Steps) {
				next = g.alpha(g.run.Steps[k+1].Time)
				if std = math.Sqrt(1 - alpha/next); variance == "posterior" {
					std *= math.Sqrt((1 - next) / (1 - alpha))
				}
			}
			z, jacobian := make([]float64, len(x)), make([]float64, len(x))
			for i := range x {
				z[i] = g.clean(i, alpha) * x[i]
				if math.Abs(z[i]) < 1 {
					jacobian[i] = g.clean(i, alpha)
				}
				z[i] = max(-1, min(1, z[i]))
			}
			slope, norm := g.gradient(z)
			for i, e := range g.draw(0, st.Time, 0, 1) {
				mean := (math.Sqrt(next)*(1-alpha/next)*z[i] + math.Sqrt(alpha/next)*(1-next)*x[i]) / (1 - alpha)
				x[i] = mean + std*e - 3.0*16/256*jacobian[i]*slope[i]/norm
			}
		})
	}
}

// With a Gaussian prior the ODE is a product of factors, one for each pixel, and the chain is that of a quadratic energy.
func TestDAPSWithGaussianPrior(t *testing.T) {
	t.Parallel()
	const steps, sub, iterations, tau, lr, momentum = 6, 3, 7, 0.1, 1e-3, 0.6
	for _, chain := range []string{"langevin", "hmc", "mh"} {
		t.Run(chain, func(t *testing.T) {
			t.Parallel()
			g := newGaussianProblem(t, "daps", steps, "chain", chain, "chain_steps", iterations, "ode_steps", sub, "sigma_max", 20.0, "sigma_min", 0.1,
				"ode_end", 0.01, "tau", tau, "lr", lr, "lr_ratio", 0.1, "momentum", momentum)
			level := func(high, low float64, i, n int) float64 {
				a, b := math.Pow(high, 1.0/7), math.Pow(low, 1.0/7)
				return math.Pow(a+(b-a)*float64(i)/float64(n), 7)
			}
			accepted := 0
			g.solve(t, 2e-4, func(k int, st method.Step, state [][]float64) {
				x, sigma, next := state[0], level(20, 0.1, k, steps), 0.0
				if k+1 < steps {
					next = level(20, 0.1, k+1, steps)
				}
				eta := lr * (1 + float64(k)/float64(steps+1)*(0.1-1))
				for i := range x {
					if k == 0 {
						x[i] *= sigma
					}
					for j := range sub {
						at, alpha := level(sigma, 0.01, j, sub), g.alpha(st.Times["ode"][j])
						score := math.Sqrt(1-alpha) / (alpha*float64(g.variance[i]) + 1 - alpha) / math.Sqrt(1+at*at) // of ε
						x[i] += (level(sigma, 0.01, j+1, sub) - at) * score * x[i]
					}
				}
				clean, w := slices.Clone(x), slices.Clone(x)
				velocity := g.draw(1, st.Time, 0, 1)
				decisions := g.draw(3, st.Time, 0, 1)
				energy := func(w []float64) float64 {
					_, norm := g.gradient(w)
					e := norm * norm / (2 * tau * tau)
					for i := range w {
						e += (w[i] - clean[i]) * (w[i] - clean[i]) / (2 * sigma * sigma)
					}
					return e
				}
				for j := range iterations {
					e := g.draw(2, st.Time, j, 1)
					slope, _ := g.gradient(w)
					proposal := slices.Clone(w)
					for i := range w {
						score := -2*slope[i]/(tau*tau) + (clean[i]-w[i])/(sigma*sigma)
						switch chain {
						case "langevin":
							proposal[i] += eta*score + math.Sqrt(2*eta)*e[i]
						case "hmc":
							velocity[i] = momentum*velocity[i] + math.Sqrt(eta)*score + math.Sqrt(2*(1-momentum))*e[i]
							proposal[i] += math.Sqrt(eta) * velocity[i]
						case "mh":
							proposal[i] += math.Sqrt(eta) * e[i]
						}
					}
					if chain != "mh" {
						w = proposal
					} else if uniform := math.Erfc(-decisions[j]/math.Sqrt2) / 2; math.Log(uniform) < energy(w)-energy(proposal) {
						accepted++
						w = proposal
					}
				}
				for i, e := range g.draw(0, st.Time, 0, next) {
					x[i] = w[i] + e
				}
			})
			if chain == "mh" && (accepted == 0 || accepted == steps*iterations) {
				t.Errorf("%d of %d proposals accepted: the test sees only one decision", accepted, steps*iterations)
			}
		})
	}
}

// With a Gaussian prior R(s) is a product of factors, one for each pixel, and the loss is quadratic.
func TestDMPlugWithGaussianPrior(t *testing.T) {
	t.Parallel()
	const lr = 0.05
	for _, k := range []int{2, 3} {
		g := newGaussianProblem(t, "dmplug", 12, "lr", lr, "ddim_steps", k)
		gain := make([]float64, len(g.variance))
		for i := range gain {
			gain[i] = 1
			for j := range k {
				alpha, next := g.alpha((k-1-j)*(1000/k)), 1.0
				if j+1 < k {
					next = g.alpha((k - 2 - j) * (1000 / k))
				}
				z := g.clean(i, alpha)
				gain[i] *= math.Sqrt(next)*z + math.Sqrt(1-next)*(1-math.Sqrt(alpha)*z)/math.Sqrt(1-alpha)
			}
		}
		m := float64(len(g.problem.Y))
		g.solve(t, 1e-3, func(step int, _ method.Step, state [][]float64) {
			x, seed, mean, square := state[0], state[1], state[2], state[3]
			for i := range x {
				x[i] = gain[i] * seed[i]
			}
			slope, _ := g.gradient(x)
			for i := range x {
				d := 2 / m * gain[i] * slope[i]
				mean[i] = 0.9*mean[i] - 0.1*d
				square[i] = 0.999*square[i] + 0.001*d*d
				n := float64(step + 1)
				seed[i] += lr * mean[i] / (1 - math.Pow(0.9, n)) / (math.Sqrt(square[i]/(1-math.Pow(0.999, n))) + 1e-8)
			}
		})
	}
}
