package solver

import (
	"context"
	"math"
	"slices"
	"testing"

	"ddiff/restore/method"
	"ddiff/restore/noise"
	"ddiff/restore/onnx/onnxtest"
	"ddiff/restore/operator"
	"ddiff/restore/prior"
)

// PSLD without noise, against the same algorithm in float64 with matrices: a linear autoencoder, Gaussian latents, and gradients
// through the network by finite differences. TestPublishedSteps has the steps of the authors' code, which has no adjoint.
func TestPSLDAgainstReference(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ task, back string }{
		"deblurred": {operator.GaussianDeblur, "resize"},
		"adjoint":   {operator.SuperResolution, "adjoint"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, p, op := newLatentModel(t, c.task)
			cfg := with(resolve(t, method.Request{Method: "psld", Preset: "ffhq", Task: c.task, Steps: 6}), "gamma", 0.2, "omega", 0.3, "back", c.back)
			run := planRun(t, quiet{method.PSLD()}, cfg, p, op)
			s := compile(t, onnxtest.Runtime(t), run, 1, Build{})
			state := []State{s.Start(m.problem.Key)}
			z := float64s(state[0].Image())
			must(t, s.Resume(context.Background(), []Problem{m.problem}, state, make([]Curves, 1), nil))
			want, worst, size := referencePSLD(m, cfg, z), 0.0, 0.0
			for i, v := range float64s(state[0].Image()) {
				worst, size = max(worst, math.Abs(v-want[i])), max(size, math.Abs(want[i]))
			}
			if !(worst <= 2e-4*max(1, size)) || !(size >= 0.1) {
				t.Errorf("distance %.2g from the reference, whose largest entry is %.2g", worst, size)
			}
		})
	}
}

// quiet is a method whose steps add no noise.
type quiet struct{ method.Method }

func (q quiet) Plan(s method.Settings, schedule prior.Schedule, image operator.Shape) ([]method.Step, error) {
	steps, err := q.Method.Plan(s, schedule, image)
	for i := range steps {
		steps[i].Std = nil
	}
	return steps, err
}

// latentModel is a problem with matrices: y = W·A·D·z.
type latentModel struct {
	encode, decode, a [][]float64
	weight, y         []float64
	variance, alpha   []float64 // alpha: ᾱ by time
	rows, sides       [2]int    // of y and of the image
	problem           Problem
}

// newLatentModel makes a problem with a linear autoencoder.
func newLatentModel(t *testing.T, task string) (latentModel, *prior.Prior, *operator.Operator) {
	t.Helper()
	image, latent := operator.Shape{Channels: 1, Height: 16, Width: 16}, operator.Shape{Channels: 1, Height: 8, Width: 8}
	stage := newLinearStage(image, latent, 1.5)
	variance := make([]float32, latent.Size())
	for i := range variance {
		variance[i] = 0.2 + 0.3*float32(i%7)/6
	}
	p, op := linearPrior(t, stage, variance), newOperator(t, task, image)
	key := noise.Key{23}
	draw := encoded(t, op, key)
	m := latentModel{encode: stage.encode, decode: stage.decode, a: columns(t, op, draw), variance: float64s(variance), alpha: p.Schedule.AlphaBar,
		rows: [2]int(op.Measurement[1:]), sides: [2]int{16, 16}}
	truth, y := make([]float32, latent.Size()), make([]float32, op.MeasurementSize())
	noise.Normal(truth, key, noise.Start, 1, 0.5)
	noise.Normal(y, key, noise.Measurement, 0, 0.05)
	for i, v := range apply(product(m.a, m.decode), float64s(truth)) {
		y[i] += float32(v)
	}
	m.y, m.weight = float64s(y), make([]float64, len(y))
	for i := range m.weight {
		m.weight[i] = 1
		if task == operator.InpaintRandom {
			m.weight[i] = float64(draw[i])
		}
	}
	m.problem = Problem{Y: y, Draw: draw, Key: key}
	return m, p, op
}

// residual is W·(y − A·x).
func (m latentModel) residual(x []float64) []float64 {
	out := apply(m.a, x)
	for i := range out {
		out[i] = m.weight[i] * (m.y[i] - out[i])
	}
	return out
}

// eps is the network's prediction.
func (m latentModel) eps(z []float64, t int) []float64 {
	out := make([]float64, len(z))
	for i := range z {
		out[i] = math.Sqrt(1-m.alpha[t]) * z[i] / (m.alpha[t]*m.variance[i] + 1 - m.alpha[t])
	}
	return out
}

// sum returns the sum of multiples, given as factors and vectors in turn.
func sum(terms ...any) []float64 {
	out := make([]float64, len(terms[1].([]float64)))
	for k := 0; k < len(terms); k += 2 {
		for i, v := range terms[k+1].([]float64) {
			out[i] += terms[k].(float64) * v
		}
	}
	return out
}

func length(v []float64) float64 {
	square := 0.0
	for _, x := range v {
		square += x * x
	}
	return math.Sqrt(square)
}

// slope is the gradient of f by central differences.
func slope(f func([]float64) float64, at []float64) []float64 {
	const h = 1e-6
	out := make([]float64, len(at))
	for i := range at {
		up, down := slices.Clone(at), slices.Clone(at)
		up[i], down[i] = up[i]+h, down[i]-h
		out[i] = (f(up) - f(down)) / (2 * h)
	}
	return out
}

// clean is the prior's clean latent of z_t.
func (m latentModel) clean(z []float64, t int) []float64 {
	return sum(1/math.Sqrt(m.alpha[t]), z, -math.Sqrt(1-m.alpha[t])/math.Sqrt(m.alpha[t]), m.eps(z, t))
}

// times are those of guided diffusion, with ᾱ of each and of the next one.
func (m latentModel) times(n int) (times []int, alpha []float64) {
	for i := n - 1; i >= 0; i-- {
		t := int(math.RoundToEven(float64(i) * 999 / float64(n-1)))
		times, alpha = append(times, t), append(alpha, m.alpha[t])
	}
	return times, append(alpha, 1)
}

func referencePSLD(m latentModel, s method.Settings, z []float64) []float64 {
	back := func(r []float64) []float64 {
		if s.Word("back") == "adjoint" {
			return apply(transpose(m.a), r)
		}
		out := make([]float64, m.sides[0]*m.sides[1])
		for i := range out {
			y, x := i/m.sides[1]*m.rows[0]/m.sides[0], i%m.sides[1]*m.rows[1]/m.sides[1]
			out[i] = r[y*m.rows[1]+x]
		}
		return out
	}
	times, alpha := m.times(s.Steps)
	for i, t := range times {
		loss := func(z []float64) float64 {
			c := m.clean(z, t)
			x := apply(m.decode, c)
			r := m.residual(x)
			return s.Number("omega")*length(r) + s.Number("gamma")*length(sum(1.0, apply(m.encode, sum(1.0, x, 1.0, back(r))), -1.0, c))
		}
		z = sum(math.Sqrt(alpha[i+1]), m.clean(z, t), math.Sqrt(1-alpha[i+1]), m.eps(z, t), -1.0, slope(loss, z))
	}
	return z
}
