package onnx

import (
	"ddiff/internal/restore/onnx/infer"
)

// reductionRules are the rules of sums, means and norms over dimensions. The dimensions may remain with length 1 or not.
var reductionRules = map[string]rule{
	"ReduceSum": reduceRule(func(g *Graph, x, _, dy Value, _ int) Value { return g.Expand(dy, x.Dims...) }),
	"ReduceMean": reduceRule(func(g *Graph, x, _, dy Value, count int) Value {
		return g.Expand(g.scaled(dy, 1/float64(count)), x.Dims...)
	}),
	"ReduceSumSquare": reduceRule(func(g *Graph, x, _, dy Value, _ int) Value { return g.Mul(g.scaled(dy, 2), x) }),
	"ReduceL1":        reduceRule(func(g *Graph, x, _, dy Value, _ int) Value { return g.Mul(dy, g.unary("Sign", x)) }),
	"ReduceL2": reduceRule(func(g *Graph, x, y, dy Value, _ int) Value {
		return g.Mul(g.Div(dy, g.Max(y, g.number(y.DType, smallest(y.DType)))), x)
	}),
	"ReduceLogSum":    reduceRule(func(g *Graph, x, y, dy Value, _ int) Value { return g.Expand(g.Mul(dy, g.Exp(g.Neg(y))), x.Dims...) }),
	"ReduceLogSumExp": reduceRule(func(g *Graph, x, y, dy Value, _ int) Value { return g.Mul(dy, g.Exp(g.Minus(x, y))) }),
	"ReduceMax":       extremesRule,
	"ReduceMin":       extremesRule,
}

// reduceRule makes a rule from a slope for the input x, the output y and the gradient dy, both with dimensions of length
// 1 for the reduced ones, and the number of elements behind one of y.
func reduceRule(slope func(g *Graph, x, y, dy Value, count int) Value) rule {
	return func(g *Graph, n *infer.Node, _ int, dy []Value) (Value, error) {
		x, y, d, _, err := g.aligned(n, dy[0])
		if err != nil {
			return Value{}, err
		}
		return slope(g, x, y, d, x.Size()/y.Size()), nil
	}
}

// aligned returns the input of a reduction, its output and the gradient with dimensions of length 1, and the axes.
func (g *Graph) aligned(n *infer.Node, dy Value) (x, y, d Value, axes []int, err error) {
	x, y = n.Inputs[0], n.Outputs[0]
	axes, ok := g.facts.ReducedAxes(n)
	if !ok {
		return x, y, dy, nil, n.Refuse("its axes depend on data")
	}
	dims := infer.Without(x.Dims, axes, true)
	return x, g.reshaped(y, dims), g.reshaped(dy, dims), axes, nil
}

// extremesRule divides the gradient equally among the elements that are equal to the result.
func extremesRule(g *Graph, n *infer.Node, _ int, dy []Value) (Value, error) {
	x, y, d, axes, err := g.aligned(n, dy[0])
	if err != nil {
		return Value{}, err
	}
	is := g.Cast(g.compare("Equal", x, y), x.DType)
	count := is
	if len(axes) > 0 {
		count = g.ReduceSum(is, axes...)
	}
	return g.Mul(is, g.Div(d, count)), nil
}
