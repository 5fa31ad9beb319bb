package onnx

// reductionRules are the rules of sums, means and norms over dimensions.
var reductionRules = map[string]rule{
	"ReduceSum": func(g *Graph, n *node, _ int, dy []Value) (Value, error) {
		return g.Expand(dy[0], n.inputs[0].Dims...), nil
	},
}
