package onnx

import (
	"math"
	"slices"

	"ddiff/restore/onnx/infer"
)

// arithmeticRules are the rules of element-wise arithmetic. Their inputs broadcast.
var arithmeticRules = map[string]rule{
	"Add": func(g *Graph, n *infer.Node, k int, dy []Value) (Value, error) {
		return g.unbroadcast(dy[0], n.Inputs[k].Dims), nil
	},
	"Sum": func(g *Graph, n *infer.Node, k int, dy []Value) (Value, error) {
		return g.unbroadcast(dy[0], n.Inputs[k].Dims), nil
	},
	"Mean":  meanRule,
	"Sub":   subRule,
	"Mul":   mulRule,
	"Div":   divRule,
	"Pow":   powRule,
	"Min":   extremeRule,
	"Max":   extremeRule,
	"Where": whereRule,
	"Clip":  clipRule,
	"Sqrt":  sqrtRule,
	"Neg":   func(g *Graph, _ *infer.Node, _ int, dy []Value) (Value, error) { return g.Neg(dy[0]), nil },
	"Exp": func(g *Graph, n *infer.Node, _ int, dy []Value) (Value, error) {
		return g.Mul(dy[0], n.Outputs[0]), nil
	},
	"Log": func(g *Graph, n *infer.Node, _ int, dy []Value) (Value, error) { return g.Div(dy[0], n.Inputs[0]), nil },
	"Abs": func(g *Graph, n *infer.Node, _ int, dy []Value) (Value, error) {
		return g.Mul(dy[0], g.unary("Sign", n.Inputs[0])), nil
	},
	"Reciprocal": func(g *Graph, n *infer.Node, _ int, dy []Value) (Value, error) {
		return g.Neg(g.Mul(dy[0], g.Mul(n.Outputs[0], n.Outputs[0]))), nil
	},
	"Sin": func(g *Graph, n *infer.Node, _ int, dy []Value) (Value, error) {
		return g.Mul(dy[0], g.unary("Cos", n.Inputs[0])), nil
	},
	"Cos": func(g *Graph, n *infer.Node, _ int, dy []Value) (Value, error) {
		return g.Neg(g.Mul(dy[0], g.unary("Sin", n.Inputs[0]))), nil
	},
	"Tan": func(g *Graph, n *infer.Node, _ int, dy []Value) (Value, error) {
		y := n.Outputs[0]
		return g.Mul(dy[0], g.Add(g.Mul(y, y), g.number(y.DType, 1))), nil
	},
	"Atan": func(g *Graph, n *infer.Node, _ int, dy []Value) (Value, error) {
		x := n.Inputs[0]
		return g.Div(dy[0], g.Add(g.Mul(x, x), g.number(x.DType, 1))), nil
	},
	"Erf": func(g *Graph, n *infer.Node, _ int, dy []Value) (Value, error) {
		x := n.Inputs[0]
		return g.scaled(g.Mul(dy[0], g.Exp(g.Neg(g.Mul(x, x)))), 2/math.Sqrt(math.Pi)), nil
	},
}

func meanRule(g *Graph, n *infer.Node, k int, dy []Value) (Value, error) {
	return g.scaled(g.unbroadcast(dy[0], n.Inputs[k].Dims), 1/float64(len(n.Inputs))), nil
}

func subRule(g *Graph, n *infer.Node, k int, dy []Value) (Value, error) {
	d := dy[0]
	if k == 1 {
		d = g.Neg(d)
	}
	return g.unbroadcast(d, n.Inputs[k].Dims), nil
}

func mulRule(g *Graph, n *infer.Node, k int, dy []Value) (Value, error) {
	return g.unbroadcast(g.Mul(dy[0], n.Inputs[1-k]), n.Inputs[k].Dims), nil
}

func divRule(g *Graph, n *infer.Node, k int, dy []Value) (Value, error) {
	a, b := n.Inputs[0], n.Inputs[1]
	d := g.Div(dy[0], b)
	if k == 1 {
		d = g.Neg(g.Mul(d, g.Div(a, b)))
	}
	return g.unbroadcast(d, n.Inputs[k].Dims), nil
}

// powRule covers positive bases with any exponent, and any base with a whole constant exponent.
func powRule(g *Graph, n *infer.Node, k int, dy []Value) (Value, error) {
	x, p := n.Inputs[0], n.Inputs[1]
	t := x.DType
	zero := g.number(t, 0)
	if k == 1 {
		if p.DType != t {
			return Value{}, n.Refuse("a base and an exponent of different types")
		}
		// xᵖ·log x, and 0 at x = 0.
		log := g.Log(g.where(g.compare("Greater", x, zero), x, g.number(t, 1)))
		return g.unbroadcast(g.Mul(dy[0], g.Mul(n.Outputs[0], log)), p.Dims), nil
	}
	if c, ok := g.constantNumbers(p); ok && !slices.ContainsFunc(c, func(v float64) bool { return v != c[0] }) && len(c) > 0 {
		var slope Value
		switch c[0] {
		case 0:
			return Value{}, nil
		case 1:
			return g.unbroadcast(dy[0], x.Dims), nil
		case 2:
			slope = x
		case 3:
			slope = g.Mul(x, x)
		default:
			slope = g.Apply("Pow", t, x.Dims, nil, x, g.number(t, c[0]-1))
		}
		return g.unbroadcast(g.scaled(g.Mul(dy[0], slope), c[0]), x.Dims), nil
	}
	if p.DType != t {
		p = g.Cast(p, t)
	}
	slope := g.Mul(p, g.elementwise("Pow", t, x, g.Minus(p, g.number(t, 1))))
	slope = g.where(g.compare("Equal", p, zero), zero, slope)
	return g.unbroadcast(g.Mul(dy[0], slope), x.Dims), nil
}

// constantNumbers returns the elements of a float or integer value that does not depend on data.
func (g *Graph) constantNumbers(v Value) ([]float64, bool) {
	l, ok := g.facts.LiteralOf(v.Name)
	return l.Floats(), ok
}

// extremeRule divides the gradient equally among the inputs that are equal to the result.
func extremeRule(g *Graph, n *infer.Node, k int, dy []Value) (Value, error) {
	y := n.Outputs[0]
	var all, mine Value
	for i, in := range n.Inputs {
		is := g.Cast(g.compare("Equal", in, y), y.DType)
		if i == k {
			mine = is
		}
		if i == 0 {
			all = is
		} else {
			all = g.Add(all, is)
		}
	}
	return g.unbroadcast(g.Mul(dy[0], g.Div(mine, all)), n.Inputs[k].Dims), nil
}

func whereRule(g *Graph, n *infer.Node, k int, dy []Value) (Value, error) {
	d, zero := dy[0], g.number(dy[0].DType, 0)
	if k == 1 {
		d = g.where(n.Inputs[0], d, zero)
	} else {
		d = g.where(n.Inputs[0], zero, d)
	}
	return g.unbroadcast(d, n.Inputs[k].Dims), nil
}

// sqrtRule builds dy/(2√x), and about 0 where √x is 0: the modulus in phase retrieval has the zero subgradient at the
// origin.
func sqrtRule(g *Graph, n *infer.Node, _ int, dy []Value) (Value, error) {
	y := n.Outputs[0]
	return g.Div(dy[0], g.Max(g.Mul(y, g.number(y.DType, 2)), g.number(y.DType, smallest(y.DType)))), nil
}

// smallest is a divisor instead of 0.
func smallest(t DType) float64 {
	if t == Float16 {
		return 6e-5 // the smallest normal number
	}
	return 1e-12
}

// clipRule passes the gradient inside and at the limits.
func clipRule(g *Graph, n *infer.Node, k int, dy []Value) (Value, error) {
	if k > 0 {
		return Value{}, n.Refuse("variable limits")
	}
	return g.Mul(dy[0], g.inside(n.Inputs[0], n.Input(1), n.Input(2))), nil
}
