package solver

import (
	"context"
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"

	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/prior"
	"ddiff/restore/method"
	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// conformant is every built-in method, one with two draws and no curve, and one with inner iterations.
func conformant() method.Set {
	return append(method.Builtin(), method.Named{Name: "two_draws", Method: twoDraws{}}, method.Named{Name: "inner", Method: inner{}})
}

// tiny is a size at which the dense matrices of a linear first stage are small.
var tiny = operator.Shape{Channels: 3, Height: 16, Width: 24}

// suitable is a small prior in whose space the method works.
func suitable(t testing.TB, info method.Info) *prior.Prior {
	t.Helper()
	if !info.Latent {
		return localPrior(t)
	}
	latent := operator.Shape{Channels: 2, Height: tiny.Height / 4, Width: tiny.Width / 4}
	return linearPrior(t, newLinearStage(tiny, latent, 1), slices.Repeat([]float32{0.5}, latent.Size()))
}

// gamma is the step size, for which not every method has a default.
func gamma() map[string]parameter.Value {
	return map[string]parameter.Value{"gamma0": parameter.Number(8)}
}

// TestMethods is the conformance suite: every built-in method keeps the rules of its interface and meets a known posterior.
func TestMethods(t *testing.T) {
	t.Parallel()
	for _, m := range method.Builtin() {
		t.Run(m.Info().Name, func(t *testing.T) {
			t.Parallel()
			t.Run("rules", func(t *testing.T) { checkRules(t, m, "natural") })
			if slices.ContainsFunc(m.Info().Rows, func(r method.Row) bool { return r.Preset == "gradient" }) {
				t.Run("rules of the gradient step", func(t *testing.T) { checkRules(t, m, "gradient") })
			}
			t.Run("posterior", func(t *testing.T) { checkPosterior(t, m) })
		})
	}
}

// TestRulesOfLatentVariants: the readings of latent_ddiff keep the rules.
func TestRulesOfLatentVariants(t *testing.T) {
	t.Parallel()
	for name, changes := range latentVariants() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkRules(t, named(t, "latent_ddiff"), "ffhq", changes...)
		})
	}
}

// TestRulesOfTestMethods: the methods of these tests keep the rules.
func TestRulesOfTestMethods(t *testing.T) {
	t.Parallel()
	checkRules(t, twoDraws{}, "natural")
	checkRules(t, inner{}, "natural")
}

// checkRules restores two images with a method. A result depends neither on the other images of the batch, nor on the place in it, nor
// on an interruption, but on the seed. Each curve has a finite entry for each step. A method sees the
// measurement, the mask and the seed of an image only.
func checkRules(t *testing.T, m method.Method, preset string, changes ...any) {
	t.Helper()
	const steps, n = 7, 2
	op := newOperator(t, operator.GaussianDeblur, tiny)
	probs := problems(t, op, n, 0.05)
	info := m.Info()
	p := suitable(t, info)
	settings, err := conformant().Resolve(method.Request{Method: info.Name, Preset: preset, Task: op.Task, Steps: steps, Values: gamma()}, 1000)
	must(t, err)
	run := planRun(t, m, with(settings, changes...), p, op)
	if len(run.Steps) != steps {
		t.Fatalf("%d steps, want %d", len(run.Steps), steps)
	}
	batch := compile(t, onnxtest.Runtime(t), run, n, Build{})
	want := solve(t, batch, probs)
	checkCurves(t, run, want[1].Curves)
	if len(want[1].X) != tiny.Size() {
		t.Fatalf("the image has %d elements, want %d", len(want[1].X), tiny.Size())
	}

	// The second problem in the first place, beside itself with another seed.
	other := probs[1]
	other.Key[0]++
	placed := solve(t, batch, []Problem{probs[1], other})
	if d := maxAbs(placed[0].X, want[1].X); !(d <= 1.0/255) {
		t.Errorf("in another place, the image differs by %.2g", d)
	}
	// Settings without noise in the steps may forget the start.
	noisy := len(info.Draws) > 0
	noisy = noisy && with(settings, changes...).Word("noise") != "none"
	if d := maxAbs(placed[1].X, placed[0].X); d == 0 && noisy {
		t.Error("another seed gives the same image")
	}

	// Alone, and interrupted after the second step.
	alone := compile(t, onnxtest.Runtime(t), run, 1, Build{})
	whole := solve(t, alone, probs[1:])[0]
	if d := maxAbs(whole.X, want[1].X); !(d <= 1.0/255) {
		t.Errorf("alone, the image differs by %.2g from that of the batch", d)
	}
	states, curves := []State{batch.Start(probs[1].Key)}, make([]Curves, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err = alone.Resume(ctx, probs[1:], states, curves, func(step int) error {
		if step == 2 {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) || states[0].Step != 2 || !Fits(run, states[0], curves[0]) {
		t.Fatalf("error %v after %d steps; the state fits: %v", err, states[0].Step, Fits(run, states[0], curves[0]))
	}
	resumed := []State{states[0].Clone()}
	must(t, alone.Resume(t.Context(), probs[1:], resumed, curves, nil))
	answers, err := alone.Answers(t.Context(), resumed)
	must(t, err)
	if !slices.Equal(answers[0], whole.X) || !reflect.DeepEqual(curves[0], whole.Curves) {
		t.Error("the resumed run has other bits")
	}
	if Fits(run, resumed[0], curves[0]) {
		t.Error("a finished state fits")
	}
	states[0].Tensors[0].Name = "another"
	if Fits(run, states[0], curves[0]) {
		t.Error("a state of other tensors fits")
	}
}

// TestNoTruth: a solver gets the measurement, the mask or kernel, the weights of pixels, and the seed of an image. A field for more would need a test that
// answers do not depend on the true image.
func TestNoTruth(t *testing.T) {
	t.Parallel()
	var names []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Problem]()) {
		names = append(names, f.Name)
	}
	if want := []string{"Y", "Draw", "Weights", "Key"}; !slices.Equal(names, want) {
		t.Errorf("a problem has the fields %v, want %v", names, want)
	}
}

// checkCurves checks that each curve of a finished run has a finite entry for each step.
func checkCurves(t *testing.T, run *method.Run, c Curves) {
	t.Helper()
	if len(c.Time) != len(run.Steps) || len(c.Curves) != len(run.Info.Curves) {
		t.Fatalf("%d times and %d curves, want %d and %d", len(c.Time), len(c.Curves), len(run.Steps), len(run.Info.Curves))
	}
	for i, st := range run.Steps {
		if c.Time[i] != st.Time {
			t.Errorf("step %d has time %d, want %d", i+1, c.Time[i], st.Time)
		}
	}
	for i, want := range run.Info.Curves {
		if got := c.Curves[i]; got.Name != want.Name || len(got.Values) != len(run.Steps) {
			t.Errorf("curve %s has %d entries, want %d of %s", got.Name, len(got.Values), len(run.Steps), want.Name)
		}
		for k, v := range c.Curves[i].Values {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Errorf("curve %s is %v at step %d", want.Name, v, k+1)
			}
		}
	}
}

// Every method plans finite numbers at the ends of its parameters' ranges.
func TestParameterRanges(t *testing.T) {
	t.Parallel()
	op := newOperator(t, operator.GaussianDeblur, tiny)
	for _, m := range conformant() {
		info := m.Info()
		p := suitable(t, info)
		for _, param := range info.Parameters {
			values := []parameter.Value{param.Start()}
			for _, w := range param.Words() {
				values = append(values, parameter.Word(w))
			}
			if bounded := param.Of(1000); len(param.Choices) == 0 {
				values = append(values, parameter.Number(bounded.Max))
				if !param.Open {
					values = append(values, parameter.Number(bounded.Min))
				}
			}
			for _, v := range values {
				values := gamma()
				values[param.Name] = v
				settings, err := conformant().Resolve(method.Request{Method: info.Name, Preset: "natural", Task: op.Task, Steps: 10, Values: values}, 1000)
				if err != nil {
					t.Errorf("%s, %s = %v: %v", info.Name, param.Name, v, err)
					continue
				}
				// A value may contradict another parameter; a method says so.
				if _, err := method.NewRun(m, settings, p, op); err != nil && !errors.Is(err, method.ErrSetting) {
					t.Errorf("%s, %s = %v: %v", info.Name, param.Name, v, err)
				}
			}
			for _, v := range []parameter.Value{parameter.Number(math.NaN()), parameter.Number(-1), parameter.Word("unheard-of")} {
				if err := param.Test(v); err == nil {
					t.Errorf("%s accepts %s = %v", info.Name, param.Name, v)
				}
			}
		}
	}
}

// twoDraws moves half of the way to the predicted image and adds two draws.
type twoDraws struct{}

func (twoDraws) Info() method.Info {
	return method.Info{
		Name: "two_draws", Steps: 4, State: []method.Tensor{{Name: "x", Noise: true}, {Name: "y", Noise: true}}, Draws: []method.Draw{{Name: "first"}, {Name: "second"}},
	}
}

func (twoDraws) Plan(s method.Settings, schedule prior.Schedule, _ operator.Shape) ([]method.Step, error) {
	levels, err := method.Levels(schedule, s.Steps)
	var out []method.Step
	for _, l := range levels {
		st := method.Step{Time: l.Time, Scalars: map[string]float64{"half": 0.5}}
		if l.Next < 1 {
			st.Std = map[string]float64{"first": 1, "second": 1}
		}
		out = append(out, st)
	}
	return out, err
}

func (twoDraws) Step(b *method.Builder, _ method.Settings) method.Next {
	z := b.Clean(b.State("x"))
	x := b.Add(b.Mul(b.Add(z, b.State("y")), b.Planned("half")), b.Draw("first"))
	return method.Next{State: map[string]onnx.Value{"x": x, "y": b.Add(z, b.Draw("second"))}}
}
