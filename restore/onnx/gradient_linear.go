package onnx

import (
	"slices"

	"ddiff/internal/restore/onnx/infer"
)

// linearRules are the rules of products of matrices.
var linearRules = map[string]rule{"MatMul": matMulRule, "Gemm": gemmRule, "Einsum": einsumRule}

// largeMatrix is the number of elements from which a rule makes no transposed copy of a constant.
const largeMatrix = 1 << 20

func matMulRule(g *Graph, n *infer.Node, k int, dy []Value) (Value, error) {
	a, b, d := n.Inputs[0], n.Inputs[1], dy[0]
	// A vector is a row on the left and a column on the right.
	wide := d.Dims
	if b.Rank() == 1 {
		b, wide = g.Reshape(b, b.Dims[0], 1), append(wide[:len(wide):len(wide)], 1)
	}
	if a.Rank() == 1 {
		a = g.Reshape(a, 1, a.Dims[0])
		last := len(wide) - 1
		wide = append(append(append([]int{}, wide[:last]...), 1), wide[last])
	}
	if len(wide) != d.Rank() {
		d = g.Reshape(d, wide...)
	}
	var dx Value
	switch {
	case k == 0 && b.Rank() == 2 && b.Size() >= largeMatrix:
		dx = g.gemm(g.flattened(d), b, 0, 1, 1)
	case k == 0:
		dx = g.MatMul(d, g.transposeLast(b))
	case b.Rank() == 2 && a.Rank() > 2:
		dx = g.gemm(g.flattened(a), g.flattened(d), 1, 0, 1)
	default:
		dx = g.MatMul(g.transposeLast(a), d)
	}
	want := n.Inputs[k].Dims
	if dx.Size() == infer.Size(want) {
		return g.reshaped(dx, want), nil
	}
	if k == 1 && len(want) == 1 { // a column, summed over the leading dimensions
		dx = g.reshaped(dx, dx.Dims[:dx.Rank()-1])
	}
	if k == 0 && len(want) == 1 { // a row
		dx = g.reshaped(dx, append(append([]int{}, dx.Dims[:dx.Rank()-2]...), want[0]))
	}
	return g.unbroadcast(dx, want), nil
}

// reshaped is Reshape, without an operation if the shape is the same.
func (g *Graph) reshaped(v Value, dims []int) Value {
	if slices.Equal(v.Dims, dims) {
		return v
	}
	return g.Reshape(v, dims...)
}

// flattened joins all dimensions but the last.
func (g *Graph) flattened(v Value) Value {
	last := v.Dims[v.Rank()-1]
	return g.reshaped(v, []int{v.Size() / last, last})
}

// gemm is α·A'·B' of matrices, each transposed if its flag is 1.
func (g *Graph) gemm(a, b Value, transA, transB int, alpha float32) Value {
	attrs := map[string]any{"transA": transA, "transB": transB, "alpha": alpha}
	return g.op("Gemm", attrs, a, b)
}

// gemmRule differentiates α·A'·B' + β·C.
func gemmRule(g *Graph, n *infer.Node, k int, dy []Value) (Value, error) {
	a, b, d := n.Inputs[0], n.Inputs[1], dy[0]
	transA, transB, alpha := n.Integer("transA", 0), n.Integer("transB", 0), n.Float("alpha", 1)
	switch {
	case k == 2:
		return g.scaled(g.unbroadcast(d, n.Inputs[2].Dims), float64(n.Float("beta", 1))), nil
	case k == 0 && transA == 0:
		return g.gemm(d, b, 0, 1-transB, alpha), nil
	case k == 0:
		return g.gemm(b, d, transB, 1, alpha), nil
	case transB == 0:
		return g.gemm(a, d, 1-transA, 0, alpha), nil
	}
	return g.gemm(d, a, 1, transA, alpha), nil
}
