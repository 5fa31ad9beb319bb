package operator

import (
	"context"
	"fmt"
	"slices"

	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/restore/onnx"
)

// Forward evaluates A on one image at a time and with one thread per operation, so that a measurement depends neither on
// the batch nor on the number of threads. One goroutine at a time uses it.
type Forward struct {
	op      *Operator
	inputs  []*onnxruntime.Tensor // x and the encoded draw; for a gradient also w
	outputs []*onnxruntime.Tensor // y; for a gradient also Jᵀ·w
	session *onnxruntime.Session
}

// NewForward compiles A. Close it after use.
func NewForward(rt *onnxruntime.Runtime, op *Operator) (*Forward, error) {
	return newForward(rt, op, 1, false)
}

// NewGradient compiles A with its gradient for one image, see [Forward.Gradient]. Close it after use.
func NewGradient(rt *onnxruntime.Runtime, op *Operator) (*Forward, error) {
	return newForward(rt, op, 1, true)
}

// newForward compiles A, and its gradient if that is wanted, for a batch of n images.
func newForward(rt *onnxruntime.Runtime, op *Operator, n int, gradient bool) (*Forward, error) {
	model, in, out, err := op.model(n, gradient)
	if err != nil {
		return nil, err
	}
	f := &Forward{op: op}
	if f.inputs, err = onnxruntime.NewTensors(in...); err != nil {
		return nil, err
	}
	if f.outputs, err = onnxruntime.NewTensors(out...); err != nil {
		f.Close()
		return nil, err
	}
	if f.session, err = rt.NewSerialSession(model, onnx.Names(in), onnx.Names(out)); err != nil {
		f.Close()
		return nil, fmt.Errorf("compile operator %s: %w", op.Task, err)
	}
	return f, nil
}

// model returns the file of graph.
func (o *Operator) model(n int, gradient bool) (data []byte, in, out []onnx.Value, err error) {
	g, in, out, err := o.graph(n, gradient)
	if err != nil {
		return nil, nil, nil, err
	}
	data, err = g.Marshal(o.Task)
	return data, in, out, err
}

// graph returns a graph for a batch of n images: its inputs are x, draw for an operator with draws, and w for a
// gradient, its outputs y and, for a gradient, gx. With a gradient, y is that of [Expression.Smooth], if there is one.
func (o *Operator) graph(n int, gradient bool) (g *onnx.Graph, in, out []onnx.Value, err error) {
	g = onnx.NewGraph(o.opset())
	x := g.Input("x", onnx.Float, o.Image.Dims(n)...)
	in = []onnx.Value{x}
	var draw onnx.Value
	if dims := o.ParameterDims(n); dims != nil {
		draw = g.Input("draw", onnx.Float, dims...)
		in = append(in, draw)
	}
	a, err := o.Apply(g, x, draw)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("task %s: %w", o.Task, err)
	}
	if smooth := o.expression.Smooth; gradient && smooth != nil {
		a.Y = smooth(g, x, draw)
	}
	g.Output("y", a.Y)
	out = []onnx.Value{{Name: "y", DType: onnx.Float, Dims: a.Y.Dims}}
	if gradient {
		w := g.Input("w", onnx.Float, o.MeasurementDims(n)...)
		gx, err := a.Gradient(w)
		if err != nil {
			return nil, nil, nil, fmt.Errorf("task %s: %w", o.Task, err)
		}
		g.Output("gx", gx)
		in, out = append(in, w), append(out, onnx.Value{Name: "gx", DType: onnx.Float, Dims: gx.Dims})
	}
	return g, in, out, nil
}

// run fills the inputs that exist, in order, and evaluates the outputs.
func (f *Forward) run(ctx context.Context, data ...[]float32) error {
	if f.op.ParameterDims(1) == nil {
		data = slices.Delete(data, 1, 2) // the draw
	}
	for i, t := range f.inputs {
		if len(data[i]) != len(t.F32) {
			return fmt.Errorf("apply operator %s: input %d has %d elements, want %d", f.op.Task, i+1, len(data[i]), len(t.F32))
		}
		copy(t.F32, data[i])
	}
	if err := f.session.Run(ctx, f.inputs, f.outputs); err != nil {
		return fmt.Errorf("apply operator %s: %w", f.op.Task, err)
	}
	return nil
}

// Apply is A(x) for one image; draw is the encoded mask or kernel, nil without one.
func (f *Forward) Apply(ctx context.Context, x, draw []float32) ([]float32, error) {
	if err := f.run(ctx, x, draw); err != nil {
		return nil, err
	}
	return slices.Clone(f.outputs[0].F32), nil
}

// Gradient is A(x) and Jᵀ·w at x for one image, if f was made by NewGradient. They are valid until the next call.
func (f *Forward) Gradient(ctx context.Context, x, draw, w []float32) (y, gx []float32, err error) {
	err = f.run(ctx, x, draw, w)
	return f.outputs[0].F32, f.outputs[1].F32, err
}

// Measure simulates a measurement: A(x) with noise, drawn with the key, on every entry.
func (f *Forward) Measure(ctx context.Context, x, draw []float32, n Noise, key noise.Key) ([]float32, error) {
	y, err := f.Apply(ctx, x, draw)
	if err != nil {
		return nil, err
	}
	n.add(y, key)
	return y, nil
}

// Close releases the runtime's memory.
func (f *Forward) Close() error {
	onnxruntime.CloseTensors(f.inputs)
	onnxruntime.CloseTensors(f.outputs)
	if f.session != nil {
		return f.session.Close()
	}
	return nil
}
