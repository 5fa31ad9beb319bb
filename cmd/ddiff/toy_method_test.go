package main

import (
	"math"

	"ddiff/restore/method"
	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
	"ddiff/restore/prior"
)

// toyMethod is a method outside the program: it repeats deterministic reverse steps, with a step of the data term in each.
type toyMethod struct{}

func (toyMethod) Info() method.Info {
	return method.Info{
		Name: "toy_method", About: "deterministic reverse steps", Citation: "none", Steps: 6,
		Parameters: parameter.List{{Name: "rate", Default: 0.2, Max: 1, Open: true, Doc: "step size of the data term"}},
		State:      []method.Tensor{{Name: "image", Noise: true}},
		Curves:     []method.Curve{{Name: "toy_norm", About: "‖y − A(z)‖"}},
	}
}

func (toyMethod) Plan(s method.Settings, schedule prior.Schedule, _ operator.Shape) ([]method.Step, error) {
	levels, err := method.Levels(schedule, s.Steps)
	var out []method.Step
	for _, l := range levels {
		k := math.Sqrt((1 - l.Next) / (1 - l.Alpha))
		out = append(out, method.Step{Time: l.Time, Scalars: map[string]float64{
			"rate": s.Number("rate"), "of_clean": math.Sqrt(l.Next) - k*math.Sqrt(l.Alpha), "of_image": k,
		}})
	}
	return out, err
}

func (toyMethod) Step(b *method.Builder, _ method.Settings) method.Next {
	z := b.Clean(b.State("image"))
	pull, norm := b.Pull(z, b.Planned("rate"), method.GradientSquared)
	next := b.Add(b.Mul(b.Add(z, pull), b.Planned("of_clean")), b.Mul(b.State("image"), b.Planned("of_image")))
	return method.Next{State: map[string]onnx.Value{"image": next}, Curves: map[string]onnx.Value{"toy_norm": norm}}
}
