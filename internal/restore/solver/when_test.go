package solver

import (
	"testing"

	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/prior"
	"ddiff/restore/method"
	"ddiff/restore/onnx"
	"ddiff/restore/operator"
)

// sometimes counts its steps, and in every third step adds ten after five evaluations of the network.
type sometimes struct{ nested bool }

func (sometimes) Info() method.Info {
	return method.Info{Name: "sometimes", Steps: 7, State: []method.Tensor{{Name: "x"}}}
}

func (sometimes) Plan(s method.Settings, schedule prior.Schedule, _ operator.Shape) ([]method.Step, error) {
	levels, err := method.Levels(schedule, s.Steps)
	var out []method.Step
	for i, l := range levels {
		flag := 0.0
		if i%3 == 0 {
			flag = 1
		}
		out = append(out, method.Step{Time: l.Time, Scalars: map[string]float64{"third": flag}})
	}
	return out, err
}

func (m sometimes) Step(b *method.Builder, _ method.Settings) method.Next {
	x := b.When("third", []onnx.Value{b.Add(b.State("x"), b.Scalar(1))}, func(b *method.Builder, state []onnx.Value) []onnx.Value {
		if m.nested {
			return b.When("third", state, func(_ *method.Builder, state []onnx.Value) []onnx.Value { return state })
		}
		return b.Repeat(5, "", state, func(b *method.Builder, _, _ onnx.Value, state []onnx.Value) []onnx.Value {
			z := b.Clean(state[0])
			return []onnx.Value{b.Add(b.Add(state[0], b.Scalar(2)), b.Mul(z, b.Scalar(0)))}
		})
	})
	return method.Next{State: map[string]onnx.Value{"x": x[0]}}
}

// A part of the step runs, and counts, in the steps of its flag.
func TestWhen(t *testing.T) {
	t.Parallel()
	op, p := newOperator(t, operator.GaussianDeblur, small), bundled(t)
	run := planRun(t, sometimes{}, method.Settings{Method: "sometimes", Steps: 7}, p, op)
	cost, err := run.Cost()
	if want := (method.Cost{Network: 15}); err != nil || cost != want {
		t.Errorf("cost %+v, %v; want %+v", cost, err, want)
	}
	got := solve(t, compile(t, onnxtest.Runtime(t), run, 1, Build{}), problems(t, op, 1, 0.05))
	if got[0].X[0] != 7+3*10 {
		t.Errorf("the state ends at %g, want 37", got[0].X[0])
	}
	nested := planRun(t, sometimes{nested: true}, method.Settings{Method: "sometimes", Steps: 7}, p, op)
	if _, err := nested.Cost(); err == nil {
		t.Error("a part inside a part is accepted")
	}
}
