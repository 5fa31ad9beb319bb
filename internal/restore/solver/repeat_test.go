package solver

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/prior"
	"ddiff/restore/method"
	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// inner is a method with inner iterations. From x_t, three sub-steps of an ODE lead to a clean image, of which ten iterations
// of Langevin's kind with the data term give x_s. Its curve is the norm of the data gradient through the network.
type inner struct{}

const odeSteps, langevinSteps = 3, 10

func (inner) Info() method.Info {
	return method.Info{
		Name: "inner", Steps: 4, State: []method.Tensor{{Name: "x", Noise: true}},
		Draws:  []method.Draw{{Name: "noise"}, {Name: "langevin", Count: func(method.Settings) int { return langevinSteps }}},
		Curves: []method.Curve{{Name: "slope", About: "‖∇_x ‖y − A(z)‖‖"}},
	}
}

func (inner) Plan(s method.Settings, schedule prior.Schedule, _ operator.Shape) ([]method.Step, error) {
	levels, err := method.Levels(schedule, s.Steps)
	var out []method.Step
	for _, l := range levels {
		st := method.Step{
			Time: l.Time, Times: map[string][]int{"ode": {l.Time, l.Time * 2 / 3, l.Time / 3}},
			Lists:   map[string][]float64{"rate": nil},
			Scalars: map[string]float64{"next": math.Sqrt(l.Next)},
			Std:     map[string]float64{"noise": math.Sqrt(1 - l.Next), "langevin": 0.01},
		}
		for i := range langevinSteps {
			st.Lists["rate"] = append(st.Lists["rate"], 0.05/float64(i+1))
		}
		out = append(out, st)
	}
	return out, err
}

func (inner) Step(b *method.Builder, _ method.Settings) method.Next {
	xt := b.State("x")
	z := b.Clean(xt)
	norm := b.Norm(b.Residual(z))
	slope := b.Gradient(norm, xt, b.Expand(b.Scalar(1), norm.Dims...))
	ode := b.Repeat(odeSteps, "", []onnx.Value{xt, z}, func(b *method.Builder, i, _ onnx.Value, state []onnx.Value) []onnx.Value {
		at := b.Moment("ode", i)
		z := b.CleanAt(state[0], at)
		// Halfway to the clean image.
		return []onnx.Value{b.Mul(b.Add(state[0], b.Mul(z, at.Alpha)), b.Scalar(0.5)), z}
	})
	x := b.Repeat(langevinSteps, "langevin", ode[1:], func(b *method.Builder, i, noise onnx.Value, state []onnx.Value) []onnx.Value {
		pull, _ := b.Pull(state[0], b.Listed("rate", i), method.GradientSquared)
		return []onnx.Value{b.Add(b.Add(state[0], pull), noise)}
	})
	next := b.Add(b.Mul(x[0], b.Planned("next")), b.Draw("noise"))
	return method.Next{State: map[string]onnx.Value{"x": next}, Curves: map[string]onnx.Value{"slope": b.Norm(slope)}}
}

// newInner plans a run of inner.
func newInner(t *testing.T, steps int) *method.Run {
	t.Helper()
	run := planRun(t, inner{}, method.Settings{Method: "inner", Steps: steps}, bundled(t), newOperator(t, operator.GaussianDeblur, small))
	return run
}

// The cost counts inner iterations, gradients through the network and the operator's calls.
func TestCost(t *testing.T) {
	t.Parallel()
	got, err := newInner(t, 5).Cost()
	// A step: 1 + 3 evaluations; A(z), its Jacobian, and both in ten iterations.
	if want := (method.Cost{Network: 4, NetworkBackward: 1, Operator: 22}).Times(5); err != nil || got != want {
		t.Errorf("cost %+v, %v; want %+v", got, err, want)
	}
	p, op := bundled(t), newOperator(t, operator.HDR, small)
	for name, want := range map[string]method.Cost{
		"ddiff":   {Network: 7, Operator: 21}, // its curve needs A(z), its data term A(z − u)
		"diffpir": {Network: 7, Operator: 14},
	} {
		got, err := newRun(t, p, op, resolve(t, method.Request{Method: name, Preset: "natural", Task: op.Task, Steps: 7})).Cost()
		if err != nil || got != want {
			t.Errorf("%s: cost %+v, %v; want %+v", name, got, err, want)
		}
	}
}

// The gradient through the network passes no operator, also where A(z) is z.
func TestCostOfIdentity(t *testing.T) {
	t.Parallel()
	p, op := bundled(t), newOperator(t, operator.Denoise, small)
	for name, want := range map[string]method.Cost{
		"dps":    {Network: 7, NetworkBackward: 7, Operator: 14}, // A(z) and its Jacobian
		"dmplug": {Network: 21, NetworkBackward: 21, Operator: 14},
	} {
		got, err := newRun(t, p, op, resolve(t, method.Request{Method: name, Preset: "natural", Task: op.Task, Steps: 7})).Cost()
		if err != nil || got != want {
			t.Errorf("%s: cost %+v, %v; want %+v", name, got, err, want)
		}
	}
	shape := operator.Shape{Channels: 3, Height: 8, Width: 8}
	latent, _ := latentCase(t, newOperator(t, operator.SuperResolution, shape), 4)
	got, err := newRun(t, latent, newOperator(t, operator.Denoise, shape), resolve(t, method.Request{Method: "psld", Preset: "ffhq", Task: op.Task, Steps: 7})).Cost()
	if want := (method.Cost{Network: 7, NetworkBackward: 7, Operator: 14, Autoencoder: 15, AutoencoderBackward: 14}); err != nil || got != want {
		t.Errorf("psld: cost %+v, %v; want %+v", got, err, want)
	}
}

// The evaluations that a method declares are those that its graph makes.
func TestDeclaredEvaluations(t *testing.T) {
	t.Parallel()
	for _, m := range method.Builtin() {
		info := m.Info()
		t.Run(info.Name, func(t *testing.T) {
			t.Parallel()
			p, op := bundled(t), newOperator(t, operator.SuperResolution, small)
			if info.Latent {
				op = newOperator(t, operator.SuperResolution, operator.Shape{Channels: 3, Height: 8, Width: 8})
				p, _ = latentCase(t, op, 4)
			}
			// The value of a parameter that the method does not have is ignored.
			for _, mirror := range method.Mirror().Choices {
				s := resolve(t, method.Request{
					Method: info.Name, Preset: "ffhq", Task: op.Task, Steps: 4, Values: map[string]parameter.Value{"mirror": parameter.Word(mirror)},
				})
				run := planRun(t, m, s, p, op)
				if cost, err := run.Cost(); err != nil || cost.Network != info.Evaluations(s) {
					t.Errorf("mirror %s: %d evaluations, %v; declared %d", mirror, cost.Network, err, info.Evaluations(s))
				}
			}
		})
	}
}

// One step of iterated computes known numbers: the sum of the noise of its iterations with the weights of a list, and the
// clean image at another time.
type iterated struct {
	count int
	body  func(b *method.Builder, i, noise onnx.Value, state []onnx.Value) []onnx.Value
}

func (iterated) weight(i int) float64 { return 1 / float64(i+1) }

func (m iterated) Info() method.Info {
	return method.Info{
		Name: "iterated", Steps: 2, State: []method.Tensor{{Name: "x", Noise: true}, {Name: "sum"}, {Name: "clean"}},
		Draws: []method.Draw{{Name: "noise", Count: func(method.Settings) int { return m.count }}},
	}
}

func (m iterated) Plan(s method.Settings, _ prior.Schedule, _ operator.Shape) (out []method.Step, err error) {
	for i := range s.Steps {
		st := method.Step{Time: 500 - i, Std: map[string]float64{"noise": 2}, Lists: map[string][]float64{"weight": nil},
			Times: map[string][]int{"others": {900, 100, 10}}}
		for i := range m.count {
			st.Lists["weight"] = append(st.Lists["weight"], m.weight(i))
		}
		out = append(out, st)
	}
	return out, nil
}

func (m iterated) Step(b *method.Builder, _ method.Settings) method.Next {
	x := b.State("x")
	body := m.body
	if body == nil {
		body = func(b *method.Builder, i, noise onnx.Value, state []onnx.Value) []onnx.Value {
			return []onnx.Value{b.Add(state[0], b.Mul(noise, b.Listed("weight", i)))}
		}
	}
	sum := b.Repeat(m.count, "noise", []onnx.Value{b.State("sum")}, body)
	clean := b.CleanAt(x, b.Moment("others", b.Index(1)))
	return method.Next{State: map[string]onnx.Value{"x": x, "sum": sum[0], "clean": clean}}
}

// iteratedRun plans two steps with a Gaussian prior of known answer.
func iteratedRun(t *testing.T, m iterated) *method.Run {
	t.Helper()
	p := gaussianPrior(t, 2, small, slices.Repeat([]float32{0.04}, small.Size()))
	run := planRun(t, m, method.Settings{Method: "iterated", Steps: 2}, p, newOperator(t, operator.HDR, small))
	return run
}

// The noise of an iteration depends on key, time, draw and iteration only, lists and times are those of the iteration, also
// in a batch.
func TestRepeat(t *testing.T) {
	t.Parallel()
	op := newOperator(t, operator.HDR, small)
	probs := problems(t, op, 2, 0.05)
	for _, count := range []int{1, shortRepeat, shortRepeat + 3} {
		m := iterated{count: count}
		run := iteratedRun(t, m)
		s := compile(t, onnxtest.Runtime(t), run, 2, Build{})
		states := []State{s.Start(probs[0].Key), s.Start(probs[1].Key)}
		must(t, s.Resume(t.Context(), probs, states, make([]Curves, 2), nil))
		for k, p := range probs {
			want, draw := make([]float32, small.Size()), make([]float32, small.Size())
			for _, st := range run.Steps {
				for i := range count {
					noise.Normal(draw, p.Key, noise.Step.Iteration(i), uint32(st.Time), 2)
					for e, v := range draw {
						want[e] += v * float32(m.weight(i))
					}
				}
			}
			if d := maxAbs(states[k].Tensors[1].Data, want); !(d <= 1e-4) {
				t.Errorf("%d iterations, image %d: the sum of the noise differs by %.2g", count, k, d)
			}
			alpha := run.Prior.Schedule.AlphaBar[100]
			for e, x := range states[k].Tensors[0].Data {
				want[e] = max(-1, min(1, x*float32(math.Sqrt(alpha)*0.04/(alpha*0.04+1-alpha))))
			}
			if d := maxAbs(states[k].Tensors[2].Data, want); !(d <= 1e-4) {
				t.Errorf("%d iterations, image %d: the clean image at time 100 differs by %.2g", count, k, d)
			}
		}
	}
}

// The end of a context interrupts the iterations of a step.
func TestCancelWithinStep(t *testing.T) {
	t.Parallel()
	m := inner{}
	op := newOperator(t, operator.GaussianDeblur, small)
	run := planRun(t, endless{m}, method.Settings{Method: "inner", Steps: 2}, bundled(t), op)
	s := compile(t, onnxtest.Runtime(t), run, 1, Build{})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	begin := time.Now()
	_, err := s.Solve(ctx, problems(t, op, 1, 0.05), nil)
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) > 20*time.Second {
		t.Errorf("error %v after %v, want the deadline soon after 50 ms", err, time.Since(begin))
	}
}

// endless is inner with a step of a billion iterations.
type endless struct{ inner }

func (endless) Step(b *method.Builder, _ method.Settings) method.Next {
	x := b.Repeat(1_000_000_000, "", []onnx.Value{b.State("x")},
		func(b *method.Builder, _, _ onnx.Value, state []onnx.Value) []onnx.Value {
			return []onnx.Value{b.Mul(state[0], b.Scalar(0.5))}
		})
	return method.Next{State: map[string]onnx.Value{"x": x[0]}, Curves: map[string]onnx.Value{"slope": b.Zeros()}}
}

// The estimate of the memory of inner noise is that of the buffers.
func TestInnerNoise(t *testing.T) {
	t.Parallel()
	for _, count := range []int{1, 33} {
		run := iteratedRun(t, iterated{count: count})
		got := NoiseBytes(run.Info, run.Settings, run.SpaceDims(1), 2)
		if step := int64(4 * count * 2 * small.Size()); got != 3*step {
			t.Errorf("%d iterations: %d bytes; want three times the noise of a step, %d", count, got, step)
		}
	}
	if got := NoiseBytes(twoDraws{}.Info(), method.Settings{}, small.Dims(1), 2); got != 0 {
		t.Errorf("%d bytes; want 0 without inner iterations", got)
	}
}

// A fault of a repetition is an error that names it.
func TestFaultyRepeats(t *testing.T) {
	t.Parallel()
	same := func(_ *method.Builder, _, noise onnx.Value, _ []onnx.Value) []onnx.Value {
		return []onnx.Value{noise}
	}
	for want, body := range map[string]func(b *method.Builder, i, noise onnx.Value, state []onnx.Value) []onnx.Value{
		"0 state tensors after an iteration, want 1": func(*method.Builder, onnx.Value, onnx.Value, []onnx.Value) []onnx.Value {
			return nil
		},
		"state tensor 1 has shape [1 3 32 15] after an iteration": func(b *method.Builder, _, noise onnx.Value, _ []onnx.Value) []onnx.Value {
			return []onnx.Value{b.Slice(noise, 3, 0, 15)}
		},
		`repeat 4 times with draw "noise", which has a count of 9`: func(b *method.Builder, _, _ onnx.Value, state []onnx.Value) []onnx.Value {
			return b.Repeat(4, "noise", state, same)
		},
		"operation has no gradient rule": func(b *method.Builder, _, noise onnx.Value, state []onnx.Value) []onnx.Value {
			out := b.Repeat(9, "", state, func(b *method.Builder, _, _ onnx.Value, state []onnx.Value) []onnx.Value {
				return []onnx.Value{b.Mul(state[0], b.Scalar(2))}
			})
			return []onnx.Value{b.Gradient(out[0], state[0], noise)}
		},
	} {
		if _, err := iteratedRun(t, iterated{9, body}).Cost(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	for _, count := range []int{0, noise.MaxIterations + 1} {
		_, err := method.NewRun(iterated{count: count}, method.Settings{Method: "iterated", Steps: 2}, bundled(t), newOperator(t, operator.HDR, small))
		if err == nil || !strings.Contains(err.Error(), `draw "noise" has a count of`) {
			t.Errorf("count %d: error %v", count, err)
		}
	}
}
