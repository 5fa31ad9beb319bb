package solver

import (
	"math"
	"slices"
	"testing"

	"ddiff/internal/restore/onnx/onnxtest"
	"ddiff/internal/restore/prior"
	"ddiff/restore/method"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// TestTasksBesideThePaper: every method restores the tasks that are not the paper's, or refuses them when the campaign is read. The
// restored image has finite values.
func TestTasksBesideThePaper(t *testing.T) {
	t.Parallel()
	paper := len(operator.Paper())
	for _, d := range operator.Builtin()[paper:] {
		t.Run(d.Name, func(t *testing.T) {
			t.Parallel()
			shape := operator.Shape{Channels: 3, Height: 16, Width: 16}
			op := newOperator(t, d.Name, shape)
			probs := problems(t, op, 1, 0.05)
			pixels := gaussianPrior(t, 1, shape, slices.Repeat([]float32{0.1}, shape.Size()))
			latent := operator.Shape{Channels: 2, Height: 4, Width: 4}
			latents := linearPrior(t, newLinearStage(shape, latent, 1), slices.Repeat([]float32{0.5}, latent.Size()))
			of := func(i method.Info) *prior.Prior {
				if i.Latent {
					return latents
				}
				return pixels
			}
			for _, m := range method.Builtin() {
				info := m.Info()
				if info.Refuses != nil && info.Refuses(d) != "" {
					continue
				}
				settings, err := method.Builtin().Resolve(method.Request{Method: info.Name, Preset: "natural", Task: d.Name, Steps: 3, Values: valuesOf(info)}, 1000)
				if err != nil {
					t.Errorf("%s: %v", info.Name, err)
					continue
				}
				run, err := method.NewRun(m, settings, of(info), op)
				if err != nil {
					t.Errorf("%s: %v", info.Name, err)
					continue
				}
				answers, err := compile(t, onnxtest.Runtime(t), run, 1, Build{}).Solve(t.Context(), probs, nil)
				if err != nil {
					t.Errorf("%s: %v", info.Name, err)
					continue
				}
				if x := answers[0].X; len(x) != shape.Size() || slices.ContainsFunc(x, func(v float32) bool { return !(math.Abs(float64(v)) < 1e3) }) {
					t.Errorf("%s: %d values, from %g to %g", info.Name, len(x), slices.Min(x), slices.Max(x))
				}
			}
		})
	}
}

// valuesOf returns the step size, where a method has it.
func valuesOf(i method.Info) map[string]parameter.Value {
	if _, ok := i.Parameters.Find("gamma0"); ok {
		return gamma()
	}
	return nil
}
