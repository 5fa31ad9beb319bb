package onnx

import (
	"math"

	"ddiff/restore/onnx/infer"
)

// activationRules are the rules of the non-linear functions of networks. At a kink, the derivative is that of PyTorch.
var activationRules = map[string]rule{
	"Sigmoid": func(g *Graph, n *infer.Node, _ int, dy []Value) (Value, error) {
		y := n.Outputs[0]
		return g.Mul(dy[0], g.Mul(y, g.Minus(g.number(y.DType, 1), y))), nil
	},
	"Tanh": func(g *Graph, n *infer.Node, _ int, dy []Value) (Value, error) {
		return g.Mul(dy[0], g.lessSquare(n.Outputs[0])), nil
	},
	"Relu": func(g *Graph, n *infer.Node, _ int, dy []Value) (Value, error) {
		zero := g.number(dy[0].DType, 0)
		return g.where(g.compare("Greater", n.Outputs[0], zero), dy[0], zero), nil
	},
	"LeakyRelu":       leakyRule,
	"PRelu":           preluRule,
	"Elu":             eluRule,
	"Selu":            seluRule,
	"Celu":            celuRule,
	"ThresholdedRelu": thresholdRule,
	"HardSigmoid":     hardSigmoidRule,
	"HardSwish":       hardSwishRule,
	"Softplus": func(g *Graph, n *infer.Node, _ int, dy []Value) (Value, error) {
		return g.Mul(dy[0], g.unary("Sigmoid", n.Inputs[0])), nil
	},
	"Softsign": func(g *Graph, n *infer.Node, _ int, dy []Value) (Value, error) {
		x := n.Inputs[0]
		d := g.Add(g.unary("Abs", x), g.number(x.DType, 1))
		return g.Div(dy[0], g.Mul(d, d)), nil
	},
	"Gelu":  geluRule,
	"Swish": swishRule,
	"Mish":  mishRule,
}

// lessSquare is 1 − v².
func (g *Graph) lessSquare(v Value) Value { return g.Minus(g.number(v.DType, 1), g.Mul(v, v)) }

// positive takes dy where x > 0 and otherwise elsewhere.
func (g *Graph) positive(x, dy, otherwise Value) Value {
	return g.where(g.compare("Greater", x, g.number(x.DType, 0)), dy, otherwise)
}

func leakyRule(g *Graph, n *infer.Node, _ int, dy []Value) (Value, error) {
	alpha := n.Float("alpha", 0.01)
	sign := n.Inputs[0]
	if alpha > 0 {
		sign = n.Outputs[0] // the input need not be kept
	}
	return g.positive(sign, dy[0], g.scaled(dy[0], float64(alpha))), nil
}

func preluRule(g *Graph, n *infer.Node, k int, dy []Value) (Value, error) {
	x, slope := n.Inputs[0], n.Inputs[1]
	if k == 0 {
		return g.positive(x, dy[0], g.Mul(dy[0], slope)), nil
	}
	return g.unbroadcast(g.positive(x, g.number(x.DType, 0), g.Mul(dy[0], x)), slope.Dims), nil
}

func eluRule(g *Graph, n *infer.Node, _ int, dy []Value) (Value, error) {
	y := n.Outputs[0]
	return g.positive(n.Inputs[0], dy[0], g.Mul(dy[0], g.Add(y, g.number(y.DType, float64(n.Float("alpha", 1)))))), nil
}

func seluRule(g *Graph, n *infer.Node, _ int, dy []Value) (Value, error) {
	alpha, gamma := float64(n.Float("alpha", 1.67326319217681884765625)), float64(n.Float("gamma", 1.05070102214813232421875))
	y := n.Outputs[0]
	return g.positive(n.Inputs[0], g.scaled(dy[0], gamma), g.Mul(dy[0], g.Add(y, g.number(y.DType, alpha*gamma)))), nil
}

func celuRule(g *Graph, n *infer.Node, _ int, dy []Value) (Value, error) {
	x := n.Inputs[0]
	return g.positive(x, dy[0], g.Mul(dy[0], g.Exp(g.scaled(x, 1/float64(n.Float("alpha", 1)))))), nil
}

func thresholdRule(g *Graph, n *infer.Node, _ int, dy []Value) (Value, error) {
	x := n.Inputs[0]
	return g.where(g.compare("Greater", x, g.number(x.DType, float64(n.Float("alpha", 1)))), dy[0], g.number(x.DType, 0)), nil
}

func hardSigmoidRule(g *Graph, n *infer.Node, _ int, dy []Value) (Value, error) {
	y := n.Outputs[0]
	zero, one := g.number(y.DType, 0), g.number(y.DType, 1)
	inside := g.compare("And", g.compare("Greater", y, zero), g.compare("Less", y, one))
	return g.where(inside, g.scaled(dy[0], float64(n.Float("alpha", 0.2))), zero), nil
}

func hardSwishRule(g *Graph, n *infer.Node, _ int, dy []Value) (Value, error) {
	x := n.Inputs[0]
	t := x.DType
	slope := g.Add(g.scaled(x, 1.0/3), g.number(t, 0.5))
	slope = g.where(g.compare("Greater", x, g.number(t, 3)), g.number(t, 1), slope)
	return g.Mul(dy[0], g.where(g.compare("Less", x, g.number(t, -3)), g.number(t, 0), slope)), nil
}

// geluRule is Φ(x) + x·φ(x), or the derivative of the approximation with tanh.
func geluRule(g *Graph, n *infer.Node, _ int, dy []Value) (Value, error) {
	x := n.Inputs[0]
	one := g.number(x.DType, 1)
	if n.Text("approximate", "none") == "tanh" {
		const a, b = 0.7978845608028654, 0.044715 // √(2/π)
		square := g.Mul(x, x)
		t := g.unary("Tanh", g.scaled(g.Mul(x, g.Add(g.scaled(square, b), one)), a))
		inner := g.scaled(g.Add(g.scaled(square, 3*b), one), a)
		slope := g.Add(g.Add(t, one), g.Mul(g.Mul(x, inner), g.lessSquare(t)))
		return g.Mul(dy[0], g.scaled(slope, 0.5)), nil
	}
	cdf := g.scaled(g.Add(g.unary("Erf", g.scaled(x, math.Sqrt2/2)), one), 0.5)
	pdf := g.scaled(g.Exp(g.scaled(g.Mul(x, x), -0.5)), 1/math.Sqrt(2*math.Pi))
	return g.Mul(dy[0], g.Add(cdf, g.Mul(x, pdf))), nil
}

// swishRule is the derivative of x·s with s = σ(α·x): s + α·x·s·(1−s).
func swishRule(g *Graph, n *infer.Node, _ int, dy []Value) (Value, error) {
	x, alpha := n.Inputs[0], float64(n.Float("alpha", 1))
	s := g.unary("Sigmoid", g.scaled(x, alpha))
	curve := g.Mul(g.scaled(x, alpha), g.Mul(s, g.Minus(g.number(x.DType, 1), s)))
	return g.Mul(dy[0], g.Add(s, curve)), nil
}

// mishRule is the derivative of x·t with t = tanh(softplus x): t + x·σ(x)·(1−t²).
func mishRule(g *Graph, n *infer.Node, _ int, dy []Value) (Value, error) {
	x := n.Inputs[0]
	t := g.unary("Tanh", g.unary("Softplus", x))
	return g.Mul(dy[0], g.Add(t, g.Mul(g.Mul(x, g.unary("Sigmoid", x)), g.lessSquare(t)))), nil
}
