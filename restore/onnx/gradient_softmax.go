package onnx

import "ddiff/internal/restore/onnx/infer"

// softmaxRule builds y·(dy − Σ dy·y).
func softmaxRule(g *Graph, n *infer.Node, _ int, dy Value) (Value, error) {
	y := n.Outputs[0]
	sum := g.ReduceSum(g.Mul(dy, y), infer.Axis(n.Integer("axis", -1), dy.Rank()))
	return g.Mul(y, g.Minus(dy, sum)), nil
}

// logSoftmaxRule builds dy − exp(y)·Σ dy.
func logSoftmaxRule(g *Graph, n *infer.Node, _ int, dy Value) (Value, error) {
	sum := g.ReduceSum(dy, infer.Axis(n.Integer("axis", -1), dy.Rank()))
	return g.Minus(dy, g.Mul(g.Exp(n.Outputs[0]), sum)), nil
}
