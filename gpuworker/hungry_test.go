package gpuworker_test

import (
	"testing"

	"ddiff/internal/gpuworker/workertest"
	"ddiff/restore/onnx"
)

// hungryPrior predicts a tenth of the image as noise, as the prior of engine does, and also computes a tensor of (factor·N)^20 zeros
// for a batch of N: with factor 1, a batch of two needs 4 MiB, and a batch of four exceeds the memory of any machine.
func hungryPrior(t *testing.T, factor int) []byte {
	t.Helper()
	return hungryAlong(t, 0, 1, factor)
}

// hungryAlong is hungryPrior whose N is the size of x along an axis in units.
func hungryAlong(t *testing.T, axis, unit, factor int) []byte {
	t.Helper()
	return workertest.Model(t, func(g *onnx.Graph, x onnx.Value) onnx.Value {
		size := g.Gather(g.Apply("Shape", onnx.Int64, []int{4}, nil, x), g.Ints(axis))
		n := g.Mul(g.Div(size, g.Ints(unit)), g.Ints(factor))
		n2 := g.Mul(n, n)
		n5 := g.Mul(g.Mul(n2, n2), n)
		n10 := g.Mul(n5, n5)
		// The tensor depends on x; otherwise it would be computed at compilation.
		sum := g.Apply("ReduceSum", onnx.Float, []int{1, 1, 1, 1}, nil, x)
		many := g.Apply("Expand", onnx.Float, []int{1, 1, 1, -1}, nil, sum, g.Mul(n10, n10))
		nothing := g.Apply("ReduceSum", onnx.Float, []int{1, 1, 1, 1}, nil, g.Mul(many, g.Scalar(0)))
		return g.Add(g.Mul(x, g.Scalar(0.1)), nothing)
	})
}
