package prior

import (
	"context"
	"fmt"
	"math"
	"slices"

	"ddiff/restore/noise"
	"ddiff/restore/onnx"
	"ddiff/restore/onnx/modelfile"
	"ddiff/restore/onnx/onnxruntime"
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
	noise.Normal(x, noise.NewKey([32]byte([]byte("ddiff prior verify: fixed noise."))), noise.Step, 0, 1)
	for i := range x {
		x[i] = float32(math.Tanh(float64(x[i]) / 2)) // in the range of images
	}
	dims := images
	for _, step := range []struct {
		role    string
		model   *modelfile.Model
		in, out string
		want    []int
	}{
		{encoderRole, p.parts.encoder, "x", "z", latents},
		{quantizerRole, p.parts.quantizer, "z", "q", latents},
		{decoderRole, p.parts.decoder, "z", "x", images},
	} {
		if step.model == nil {
			continue
		}
		call := func(want []int, result func(g *onnx.Graph, y onnx.Value) onnx.Value) (*onnxruntime.Tensor, error) {
			return evaluate(ctx, rt, p.Opset(), dims, x, func(g *onnx.Graph, v onnx.Value) (onnx.Value, error) {
				y, err := s.apply(g, step.role, step.model, v, step.in, step.out, want)
				return result(g, y), err
			})
		}
		got, err := call(step.want, func(_ *onnx.Graph, y onnx.Value) onnx.Value { return y })
		if deviceError(ctx, err) {
			return err
		}
		if err != nil {
			shape, shapeErr := call(step.want, func(g *onnx.Graph, y onnx.Value) onnx.Value {
				return g.Apply("Shape", onnx.Int64, []int{len(step.want)}, nil, y)
			})
			if shapeErr == nil && !slices.Equal(lengths(shape.I64), step.want) {
				return fmt.Errorf("prior %s: %w: the %s returns the shape %v, want %v according to the card", p.File, ErrBundle, step.role, shape.I64, step.want)
			}
			return fmt.Errorf("prior %s: %w: the %s cannot run: %w", p.File, ErrBundle, step.role, err)
		}
		if x, dims = got.F32, step.want; slices.ContainsFunc(x, func(v float32) bool { return v != v || math.IsInf(float64(v), 0) }) {
			return fmt.Errorf("prior %s: %w: the %s returns NaN or infinite values", p.File, ErrBundle, step.role)
		}
	}
	return nil
}

func lengths(dims []int64) []int {
	var out []int
	for _, d := range dims {
		out = append(out, int(d))
	}
	return out
}

// evaluate runs a graph of one input and one output once. The values of the result stay readable.
func evaluate(ctx context.Context, rt *onnxruntime.Runtime, opset int, dims []int, x []float32, build func(g *onnx.Graph, v onnx.Value) (onnx.Value, error)) (
	*onnxruntime.Tensor, error,
) {
	g := onnx.NewGraph(opset)
	in := g.Input("in", onnx.Float, dims...)
	out, err := build(g, in)
	if err != nil {
		return nil, err
	}
	g.Output("out", out)
	model, err := g.Marshal("part")
	if err != nil {
		return nil, err
	}
	tensors, err := onnxruntime.NewTensors(in, out)
	if err != nil {
		return nil, err
	}
	defer onnxruntime.CloseTensors(tensors)
	session, err := rt.NewSession(model, []string{"in"}, []string{"out"})
	if err != nil {
		return nil, err
	}
	defer session.Close()
	copy(tensors[0].F32, x)
	return tensors[1], session.Run(ctx, tensors[:1], tensors[1:])
}
