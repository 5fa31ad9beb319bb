package onnx

import (
	"slices"

	"ddiff/internal/restore/onnx/infer"
)

// arithmeticRules are the rules of element-wise arithmetic. The inputs broadcast.
var arithmeticRules = map[string]rule{
	"Add":   sumRule,
	"Sum":   sumRule,
	"Mean":  meanRule,
	"Sub":   subRule,
	"Mul":   mulRule,
	"Div":   divRule,
	"Pow":   powRule,
	"Min":   extremeRule,
	"Max":   extremeRule,
	"Where": whereRule,
	"Clip":  clipRule,
	"PRelu": preluRule,
}

func sumRule(g *Graph, n *infer.Node, k int, dy []Value) (Value, error) {
	return g.unbroadcast(dy[0], n.Inputs[k].Dims), nil
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

// powRule covers positive bases with any exponent, and any base with a whole constant exponent. The slope of an exponent below 1 is 0 at 0, as that of Sqrt.
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
			slope = g.op("Pow", nil, x, g.number(t, c[0]-1))
			if c[0] < 1 {
				slope = g.where(g.compare("Equal", x, zero), zero, slope)
			}
		}
		return g.unbroadcast(g.scaled(g.Mul(dy[0], slope), c[0]), x.Dims), nil
	}
	if p.DType != t {
		p = g.Cast(p, t)
	}
	slope := g.Mul(p, g.elementwise("Pow", x, g.Minus(p, g.number(t, 1))))
	steep := g.compare("And", g.compare("Equal", x, zero), g.compare("Less", p, g.number(t, 1)))
	return g.unbroadcast(g.Mul(dy[0], g.where(steep, zero, slope)), x.Dims), nil
}

// constantNumbers returns the elements of a float or integer value that does not depend on data.
func (g *Graph) constantNumbers(v Value) ([]float64, bool) {
	l, ok := g.facts.LiteralOf(v.Name)
	return l.Elements, ok
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

// clipRule passes the gradient inside and at the limits.
func clipRule(g *Graph, n *infer.Node, k int, dy []Value) (Value, error) {
	if k > 0 {
		return Value{}, n.Refuse("variable limits")
	}
	return g.Mul(dy[0], g.inside(n.Inputs[0], n.Input(1), n.Input(2))), nil
}

func preluRule(g *Graph, n *infer.Node, k int, dy []Value) (Value, error) {
	x, slope := n.Inputs[0], n.Inputs[1]
	f := function{g, n, x, n.Outputs[0], dy[0]}
	if k == 0 {
		return f.positive(x, dy[0], f.times(slope)), nil
	}
	return g.unbroadcast(f.positive(x, f.num(0), f.times(x)), slope.Dims), nil
}
