package onnx

// linearRules are the rules of products of matrices.
var linearRules = map[string]rule{"MatMul": matMulRule}

func matMulRule(g *Graph, n *node, k int, dy []Value) (Value, error) {
	other := g.transposeLast(n.inputs[1-k])
	if k == 0 {
		return g.unbroadcast(g.MatMul(dy[0], other), n.inputs[0].Dims), nil
	}
	return g.unbroadcast(g.MatMul(other, dy[0]), n.inputs[1].Dims), nil
}
