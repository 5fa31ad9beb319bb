package onnxtest

import (
	"context"
	"fmt"
	"testing"

	"ddiff/internal/restore/noise"
	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/restore/onnx"
)

// Run compiles a graph for the CPU and evaluates its outputs.
func Run(tb testing.TB, g *onnx.Graph, inputs, outputs []onnx.Value, data ...[]float32) [][]float32 {
	tb.Helper()
	return RunOn(tb, Runtime(tb), g, inputs, outputs, data...)
}

// RunOn compiles a graph for a runtime and evaluates its outputs.
func RunOn(tb testing.TB, rt *onnxruntime.Runtime, g *onnx.Graph, inputs, outputs []onnx.Value, data ...[]float32) [][]float32 {
	tb.Helper()
	y, err := rt.Evaluate(context.Background(), g, inputs, outputs, data...)
	if err != nil {
		tb.Fatal(err)
	}
	var res [][]float32
	for _, v := range y {
		res = append(res, v.F32)
	}
	return res
}

// Compute evaluates values of a graph, which become its outputs.
func Compute(tb testing.TB, g *onnx.Graph, inputs, values []onnx.Value, data ...[]float32) [][]float32 {
	tb.Helper()
	outputs := make([]onnx.Value, len(values))
	for i, v := range values {
		outputs[i] = onnx.Value{Name: fmt.Sprint("computed ", i), DType: v.DType, Dims: v.Dims}
		g.Output(outputs[i].Name, v)
	}
	for i, d := range data {
		if len(d) != inputs[i].Size() {
			tb.Fatalf("input %s gets %d elements, want %d", inputs[i].Name, len(d), inputs[i].Size())
		}
	}
	return Run(tb, g, inputs, outputs, data...)
}

// Random returns n numbers of the standard normal distribution.
func Random(n int, seed uint32) []float32 {
	x := make([]float32, n)
	noise.Normal(x, noise.Key{seed}, noise.Measurement, 0, 1)
	return x
}

// Parse returns the model of a graph.
func Parse(tb testing.TB, g *onnx.Graph) *modelfile.Model {
	tb.Helper()
	data, err := g.Marshal("model")
	if err != nil {
		tb.Fatal(err)
	}
	m, err := modelfile.ReadModel(data)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}
