package onnxruntime

import (
	"context"

	"ddiff/restore/onnx"
)

// Evaluate compiles a graph and runs it once. The outputs are those of the graph with these names, types and dimensions; data
// are the elements of the first inputs, which are float. The slices of the results are readable; the tensors are closed.
func (r *Runtime) Evaluate(ctx context.Context, g *onnx.Graph, inputs, outputs []onnx.Value, data ...[]float32) ([]*Tensor, error) {
	return evaluate(ctx, r.NewSession, g, inputs, outputs, data...)
}

// evaluate is Evaluate with a session that compile makes.
func evaluate(ctx context.Context, compile func(model []byte, inputs, outputs []string) (*Session, error),
	g *onnx.Graph, inputs, outputs []onnx.Value, data ...[]float32,
) ([]*Tensor, error) {
	model, err := g.Marshal("evaluation")
	if err != nil {
		return nil, err
	}
	s, err := compile(model, onnx.Names(inputs), onnx.Names(outputs))
	if err != nil {
		return nil, err
	}
	defer s.Close()
	x, err := NewTensors(inputs...)
	if err != nil {
		return nil, err
	}
	defer CloseTensors(x)
	for i := range data {
		copy(x[i].F32, data[i])
	}
	y, err := NewTensors(outputs...)
	if err != nil {
		return nil, err
	}
	defer CloseTensors(y)
	return y, s.Run(ctx, x, y)
}
