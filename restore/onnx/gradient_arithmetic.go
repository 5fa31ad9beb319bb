package onnx

// arithmeticRules are the rules of element-wise arithmetic. Their inputs broadcast.
var arithmeticRules = map[string]rule{
	"Add": func(g *Graph, n *node, k int, dy []Value) (Value, error) {
		return g.unbroadcast(dy[0], n.inputs[k].Dims), nil
	},
	"Sub":  subRule,
	"Mul":  mulRule,
	"Div":  divRule,
	"Neg":  func(g *Graph, _ *node, _ int, dy []Value) (Value, error) { return g.Neg(dy[0]), nil },
	"Exp":  func(g *Graph, n *node, _ int, dy []Value) (Value, error) { return g.Mul(dy[0], n.outputs[0]), nil },
	"Log":  func(g *Graph, n *node, _ int, dy []Value) (Value, error) { return g.Div(dy[0], n.inputs[0]), nil },
	"Sqrt": sqrtRule,
	"Clip": clipRule,
}

func subRule(g *Graph, n *node, k int, dy []Value) (Value, error) {
	d := dy[0]
	if k == 1 {
		d = g.Neg(d)
	}
	return g.unbroadcast(d, n.inputs[k].Dims), nil
}

func mulRule(g *Graph, n *node, k int, dy []Value) (Value, error) {
	return g.unbroadcast(g.Mul(dy[0], n.inputs[1-k]), n.inputs[k].Dims), nil
}

func divRule(g *Graph, n *node, k int, dy []Value) (Value, error) {
	a, b := n.inputs[0], n.inputs[1]
	d := g.Div(dy[0], b)
	if k == 1 {
		d = g.Neg(g.Mul(d, g.Div(a, b)))
	}
	return g.unbroadcast(d, n.inputs[k].Dims), nil
}

// sqrtRule builds dy/(2√x), and about 0 where √x is 0: the modulus in phase retrieval has the zero subgradient at the
// origin.
func sqrtRule(g *Graph, n *node, _ int, dy []Value) (Value, error) {
	const tiny = 1e-12
	y := n.outputs[0]
	return g.Div(dy[0], g.Max(g.Mul(y, g.number(y.DType, 2)), g.number(y.DType, tiny))), nil
}

// clipRule passes the gradient inside and at the limits.
func clipRule(g *Graph, n *node, k int, dy []Value) (Value, error) {
	if k > 0 {
		return Value{}, n.refuse("variable limits")
	}
	return g.Mul(dy[0], g.inside(n.inputs[0], n.input(1), n.input(2))), nil
}
