package onnx

import (
	"slices"

	"ddiff/internal/restore/onnx/infer"
)

// statistics are the deviation from the mean and the inverse of the standard deviation of each row of a matrix.
type statistics struct{ deviation, inverse Value }

// rowStatistics takes x of shape [R, M].
func (g *Graph) rowStatistics(x Value, epsilon float32) statistics {
	deviation := g.Minus(x, g.meanRows(x))
	return statistics{deviation, g.inverseRoot(g.dotRows(deviation, deviation), x.Dims[1], epsilon)}
}

// meanRows returns the means of the rows of [R, M], of shape [R, 1].
func (g *Graph) meanRows(x Value) Value {
	return g.scaled(g.ReduceSum(x, 1), 1/float64(x.Dims[1]))
}

// dotRows returns the inner products of the rows of two matrices [R, M], of shape [R, 1]. On a CPU, the runtime's product of
// a row and a column takes five times as long.
func (g *Graph) dotRows(a, b Value) Value { return g.ReduceSum(g.Mul(a, b), 1) }

// inverseRoot is 1/√(sum/count + ε).
func (g *Graph) inverseRoot(sum Value, count int, epsilon float32) Value {
	mean := g.scaled(sum, 1/float64(count))
	return g.Div(g.number(sum.DType, 1), g.Sqrt(g.Add(mean, g.number(sum.DType, float64(epsilon)))))
}

// normalisedGradient is the gradient of (x − mean)/√(variance + ε) for rows [R, M]:
// dy·s − (x − mean)·s³·mean(dy·(x − mean)) − s·mean(dy), s = 1/√(variance + ε).
func (g *Graph) normalisedGradient(s statistics, dy Value) Value {
	cube := g.Mul(s.inverse, g.Mul(s.inverse, s.inverse))
	slope := g.Mul(cube, g.scaled(g.dotRows(dy, s.deviation), 1/float64(dy.Dims[1])))
	offset := g.Mul(s.inverse, g.meanRows(dy))
	return g.Minus(g.Mul(dy, s.inverse), g.Add(g.Mul(s.deviation, slope), offset))
}

// affineNorm is a normalisation of x in rows, groups of equal size, with scale and shift. In the shape view of x, scale and
// shift have the shape params.
type affineNorm struct {
	x, scale     Value
	rows         int
	view, params []int
	epsilon      float32
}

// gradient builds the gradient of input k: x, scale or shift.
func (a affineNorm) gradient(g *Graph, n *infer.Node, k int, dy Value) Value {
	in := n.Inputs[k].Dims
	rows := func(v Value) Value { return g.Reshape(v, a.rows, a.x.Size()/a.rows) }
	if k == 2 {
		return g.Reshape(g.unbroadcast(g.Reshape(dy, a.view...), a.params), in...)
	}
	s := g.rowStatistics(rows(a.x), a.epsilon)
	if k == 1 {
		normal := g.Reshape(g.Mul(s.deviation, s.inverse), a.view...)
		return g.Reshape(g.unbroadcast(g.Mul(g.Reshape(dy, a.view...), normal), a.params), in...)
	}
	if scale, ok := g.facts.NumbersOf(a.scale); !ok || slices.ContainsFunc(scale, func(s float64) bool { return s != 1 }) {
		dy = g.Mul(g.Reshape(dy, a.view...), g.Reshape(a.scale, a.params...))
	}
	return g.Reshape(g.normalisedGradient(s, rows(dy)), in...)
}

// instanceNormRule: x [N, C, ...], scale and shift [C].
func instanceNormRule(g *Graph, n *infer.Node, k int, dy Value) (Value, error) {
	x := n.Inputs[0]
	a := affineNorm{x: x, scale: n.Inputs[1], epsilon: n.Float("epsilon", 1e-5), rows: x.Dims[0] * x.Dims[1]}
	a.view = []int{x.Dims[0], x.Dims[1], infer.Size(x.Dims[2:])}
	a.params = []int{1, x.Dims[1], 1}
	return a.gradient(g, n, k, dy), nil
}

// groupNormRule: x [N, C, ...], scale and shift per group before operator set 21, then per channel.
func groupNormRule(g *Graph, n *infer.Node, k int, dy Value) (Value, error) {
	x := n.Inputs[0]
	groups := n.Integer("num_groups", 1)
	a := affineNorm{x: x, scale: n.Inputs[1], epsilon: n.Float("epsilon", 1e-5), rows: x.Dims[0] * groups}
	per := infer.Size(n.Inputs[1].Dims)
	a.view = []int{x.Dims[0], per, x.Size() / x.Dims[0] / per}
	a.params = []int{1, per, 1}
	return a.gradient(g, n, k, dy), nil
}

// layerNormRule normalises over the dimensions from axis on.
func layerNormRule(g *Graph, n *infer.Node, k int, dy Value) (Value, error) {
	x := n.Inputs[0]
	from := infer.Axis(n.Integer("axis", -1), x.Rank())
	for _, in := range n.Inputs[1:] {
		if in.Name != "" && infer.Size(in.Dims) != infer.Size(x.Dims[from:]) {
			return Value{}, n.Refuse("scale of shape %v for %v", in.Dims, x.Dims[from:])
		}
	}
	a := affineNorm{x: x, scale: n.Inputs[1], epsilon: n.Float("epsilon", 1e-5), rows: infer.Size(x.Dims[:from])}
	a.view = []int{a.rows, infer.Size(x.Dims[from:])}
	a.params = []int{1, a.view[1]}
	return a.gradient(g, n, k, dy), nil
}

// batchNormRule: with fixed statistics, the normalisation is a factor per channel.
func batchNormRule(g *Graph, n *infer.Node, k int, dy Value) (Value, error) {
	if n.Integer("training_mode", 0) != 0 {
		return Value{}, n.Refuse("training_mode")
	}
	if k > 2 {
		return Value{}, n.Refuse("statistics that depend on the input")
	}
	x, channels := n.Inputs[0], n.Inputs[1].Dims[0]
	params := append([]int{1, channels}, slices.Repeat([]int{1}, max(x.Rank()-2, 0))...)
	inverse := g.inverseRoot(n.Inputs[4], 1, n.Float("epsilon", 1e-5))
	switch k {
	case 0:
		return g.Mul(dy, g.Reshape(g.Mul(n.Inputs[1], inverse), params...)), nil
	case 1:
		normal := g.Mul(g.Minus(x, g.Reshape(n.Inputs[3], params...)), g.Reshape(inverse, params...))
		dy = g.Mul(dy, normal)
	}
	return g.Reshape(g.unbroadcast(dy, params), channels), nil
}
