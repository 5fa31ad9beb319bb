package solver

import (
	"math"
	"strings"
	"testing"

	"ddiff/internal/restore/prior"
	"ddiff/restore/method"
	"ddiff/restore/onnx"
	"ddiff/restore/operator"
)

// faulty is twoDraws with a fault in its declaration, plan or step.
type faulty struct {
	twoDraws
	info func(i *method.Info)
	plan func(steps []method.Step)
	step func(b *method.Builder, next *method.Next)
}

func (f faulty) Info() method.Info {
	i := f.twoDraws.Info()
	if f.info != nil {
		f.info(&i)
	}
	return i
}

func (f faulty) Plan(s method.Settings, schedule prior.Schedule, image operator.Shape) ([]method.Step, error) {
	steps, err := f.twoDraws.Plan(s, schedule, image)
	if err == nil && f.plan != nil {
		f.plan(steps)
	}
	return steps, err
}

func (f faulty) Step(b *method.Builder, s method.Settings) method.Next {
	next := f.twoDraws.Step(b, s)
	if f.step != nil {
		f.step(b, &next)
	}
	return next
}

// A method with a fault is refused with an error that names the fault.
func TestFaultyMethods(t *testing.T) {
	t.Parallel()
	op, p := newOperator(t, operator.HDR, small), bundled(t)
	info := func(change func(i *method.Info)) faulty { return faulty{info: change} }
	plan := func(change func(steps []method.Step)) faulty { return faulty{plan: change} }
	step := func(change func(b *method.Builder, next *method.Next)) faulty { return faulty{step: change} }
	curve := func(build func(b *method.Builder) onnx.Value) faulty {
		return faulty{
			info: func(i *method.Info) { i.Curves = []method.Curve{{Name: "norm"}} },
			step: func(b *method.Builder, next *method.Next) { next.Curves = map[string]onnx.Value{"norm": build(b)} },
		}
	}
	for want, m := range map[string]faulty{
		"step 2: an earlier step adds the noise of":   plan(func(s []method.Step) { s[1].Time = s[0].Time }),
		`step 1: draw "first" has the standard devia`: plan(func(s []method.Step) { s[0].Std["first"] = math.NaN() }),
		`step 3: scalar "half" is missing`:            plan(func(s []method.Step) { delete(s[2].Scalars, "half") }),
		`state tensor "y" has shape [1 3 32 15] after the step, want float32 of shape [1 3 32 48]`: step(func(b *method.Builder, n *method.Next) {
			n.State["y"] = b.Slice(n.State["y"], 3, 0, 15)
		}),
		`the step leaves out state tensor "x"`: step(func(_ *method.Builder, n *method.Next) { delete(n.State, "x") }),
		`the step leaves out curve "norm"`:     info(func(i *method.Info) { i.Curves = []method.Curve{{Name: "norm"}} }),
		`curve "norm" has shape []`:            curve(func(b *method.Builder) onnx.Value { return b.Scalar(1) }),
		`curve "norm" has shape [1 3 32 48]`:   curve(func(b *method.Builder) onnx.Value { return b.State("x") }),
		`curve "norm" has shape [2] after th`:  curve(func(b *method.Builder) onnx.Value { return b.Expand(b.Scalar(0), 2) }),
	} {
		run, err := method.NewRun(m, method.Settings{Method: "two_draws", Steps: 4}, p, op)
		if err == nil {
			_, err = run.Cost()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
