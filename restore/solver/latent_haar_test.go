package solver

import (
	"context"
	"testing"

	"ddiff/restore/noise"
	"ddiff/restore/onnx"
	"ddiff/restore/onnx/onnxtest"
	"ddiff/restore/operator"
	"ddiff/restore/prior"
)

// With the bundled prior between two Haar transforms, the last steps of latent_ddiff are those of DDiff from a transformed
// state: these steps add no noise, and DDiff clips almost nothing in them.
func TestLatentHaarIsDDiff(t *testing.T) {
	t.Parallel()
	const steps, from = 40, 34
	pixels, latents, op := bundled(t), haarPrior(t), newOperator(t, operator.GaussianDeblur, operator.Shape{Channels: 3, Height: 32, Width: 32})
	prob, key := problems(t, op, 1, 0.02), noise.Key{8}
	same := []any{"gamma0", 4, "a", 3.3, "b", 1, "t_gamma", 90, "t0", 300, "sigma_rule", "ddpm", "gradient", "norm"}
	s := newSolver(t, pixels, op, with(config(t, op.Task, steps), same...), 1)
	// A grey picture of low contrast with the noise of the step.
	start := s.Start(key)
	start.Step = from
	for i, v := range scene(op.Image, 0) {
		start.Tensors[0].Data[i] = 0.4*v + 0.2*start.Tensors[0].Data[i]
	}
	want := []State{start.Clone()}
	must(t, s.Resume(context.Background(), prob, want, make([]Curves, 1), nil))
	transformed := encode(t, latents, op.Image, start.Image())
	for name, changes := range latentVariants() {
		s := newSolver(t, latents, op, latentSettings(t, op.Task, steps, append(changes, same...)...), 1)
		st := []State{s.Start(key)}
		st[0].Step = from
		copy(st[0].Tensors[0].Data, transformed)
		must(t, s.Resume(context.Background(), prob, st, make([]Curves, 1), nil))
		got, err := s.Answers(context.Background(), st)
		must(t, err)
		if d := maxAbs(got[0], want[0].Image()); !(d <= 1e-3) {
			t.Errorf("%s: differs by %.2g from DDiff", name, d)
		}
	}
}

// encode returns the latents of an image.
func encode(t *testing.T, p *prior.Prior, shape operator.Shape, image []float32) []float32 {
	t.Helper()
	g := onnx.NewGraph(p.Opset())
	x := g.Input("x", onnx.Float, shape.Dims(1)...)
	z, err := p.Space().Encode(g, x)
	must(t, err)
	return onnxtest.Compute(t, g, []onnx.Value{x}, []onnx.Value{z}, image)[0]
}
