package operator

import (
	"context"
	"fmt"

	"ddiff/restore/noise"
	"ddiff/restore/onnx"
)

// Forward evaluates A on one image at a time, so that a measurement does not depend on how
// items are batched. It is used by one goroutine at a time.
type Forward struct {
	op      *Operator
	inputs  []*onnx.Tensor
	y       *onnx.Tensor
	session *onnx.Session
}

// NewForward compiles A. Close it after use.
func NewForward(rt *onnx.Runtime, op *Operator) (*Forward, error) {
	g := onnx.NewGraph(onnx.DefaultOpset)
	in := []onnx.Value{g.Input("x", onnx.Float, op.Image.Dims(1)...)}
	names := []string{"x"}
	var draw onnx.Value
	if dims := op.ParameterDims(1); dims != nil {
		draw = g.Input("draw", onnx.Float, dims...)
		in, names = append(in, draw), append(names, "draw")
	}
	y := op.Forward(g, in[0], draw)
	g.Output("y", y)
	model, err := g.Marshal(op.Task)
	if err != nil {
		return nil, err
	}
	f := &Forward{op: op}
	if f.inputs, err = onnx.NewTensors(in...); err != nil {
		return nil, err
	}
	if f.y, err = onnx.NewTensor(onnx.Float, y.Dims...); err != nil {
		f.Close()
		return nil, err
	}
	if f.session, err = rt.NewSession(model, names, []string{"y"}); err != nil {
		f.Close()
		return nil, fmt.Errorf("compile operator %s: %w", op.Task, err)
	}
	return f, nil
}

// Apply is A(x) for one image; draw is the encoded mask or kernel, nil without one.
func (f *Forward) Apply(ctx context.Context, x, draw []float32) ([]float32, error) {
	for i, data := range [][]float32{x, draw} {
		if i >= len(f.inputs) {
			break
		}
		if len(data) != len(f.inputs[i].F32) {
			return nil, fmt.Errorf("apply operator %s: input %d has %d elements, want %d", f.op.Task, i+1, len(data), len(f.inputs[i].F32))
		}
		copy(f.inputs[i].F32, data)
	}
	if err := f.session.Run(ctx, f.inputs, []*onnx.Tensor{f.y}); err != nil {
		return nil, fmt.Errorf("apply operator %s: %w", f.op.Task, err)
	}
	return append([]float32(nil), f.y.F32...), nil
}

// Measure simulates y = A(x) + N(0, sigma²) with the key's noise, on every entry of y.
func (f *Forward) Measure(ctx context.Context, x, draw []float32, sigma float64, key noise.Key) ([]float32, error) {
	y, err := f.Apply(ctx, x, draw)
	if err != nil {
		return nil, err
	}
	e := make([]float32, len(y))
	noise.Normal(e, key, noise.Measurement, 0, sigma)
	for i := range y {
		y[i] += e[i]
	}
	return y, nil
}

// Close releases the runtime's memory.
func (f *Forward) Close() error {
	onnx.CloseTensors(f.inputs)
	if f.y != nil {
		f.y.Close()
	}
	if f.session != nil {
		return f.session.Close()
	}
	return nil
}
