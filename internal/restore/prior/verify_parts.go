package prior

import (
	"context"
	"fmt"
	"math"
	"slices"

	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/restore/onnx"
)

// verifyParts runs the encoder, the quantizer and the decoder of a latent prior once, each on the result of the one before. It
// returns ErrBundle for a part that cannot run, or whose result has another shape than the card states or is not finite.
func (p *Prior) verifyParts(ctx context.Context, rt *onnxruntime.Runtime) error {
	ctx, cancel := context.WithTimeoutCause(ctx, verifyLimit, errSlow)
	defer cancel()
	n, h, w := p.smallest()
	images := []int{n, p.Card.Channels, h, w}
	s := p.Space()
	latents := s.Dims(images)
	x := make([]float32, n*p.Card.Channels*h*w)
	noise.Normal(x, fixedNoise(), noise.Step, 0, 1)
	for i := range x {
		x[i] = float32(math.Tanh(float64(x[i]) / 2)) // in the range of images
	}
	dims := images
	for _, step := range []struct {
		role    string
		in, out string
		want    []int
	}{
		{encoderRole, "x", "z", latents},
		{quantizerRole, "z", "q", latents},
		{decoderRole, "z", "x", images},
	} {
		if p.parts[step.role] == nil {
			continue
		}
		call := func(result func(g *onnx.Graph, y onnx.Value) onnx.Value) (*onnxruntime.Tensor, error) {
			g := onnx.NewGraph(p.Opset())
			in := g.Input("in", onnx.Float, dims...)
			y, err := s.apply(g, step.role, in, step.in, step.out, step.want)
			if err != nil {
				return nil, err
			}
			out := result(g, y)
			g.Output("out", out)
			out.Name = "out"
			tensors, err := rt.Evaluate(ctx, g, []onnx.Value{in}, []onnx.Value{out}, x)
			if err != nil {
				return nil, err
			}
			return tensors[0], nil
		}
		got, err := call(func(_ *onnx.Graph, y onnx.Value) onnx.Value { return y })
		if onnxruntime.Environmental(ctx, err) {
			return err
		}
		if err != nil {
			shape, shapeErr := call(func(g *onnx.Graph, y onnx.Value) onnx.Value {
				return g.Apply("Shape", onnx.Int64, []int{len(step.want)}, nil, y)
			})
			if shapeErr == nil && !slices.EqualFunc(shape.I64, step.want, func(got int64, want int) bool { return int(got) == want }) {
				return fmt.Errorf("prior %s: %w: the %s returns the shape %v, want %v according to the card", p.File, ErrBundle, step.role, shape.I64, step.want)
			}
			return fmt.Errorf("prior %s: %w: the %s cannot run: %w", p.File, ErrBundle, step.role, err)
		}
		if x, dims = got.F32, step.want; !finite(x) {
			return fmt.Errorf("prior %s: %w: the %s returns NaN or infinite values", p.File, ErrBundle, step.role)
		}
	}
	return nil
}
