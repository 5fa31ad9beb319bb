package onnx

import (
	"math"

	"ddiff/internal/restore/onnx/infer"
)

// function is a node that computes each element by itself, y = f(x), and the gradient of y.
type function struct {
	*Graph
	n        *infer.Node
	x, y, dy Value
}

// num is a number of the type of x.
func (f function) num(v float64) Value { return f.number(f.x.DType, v) }

// float is an attribute.
func (f function) float(name string, otherwise float32) float64 {
	return float64(f.n.Float(name, otherwise))
}

// times is dy·slope.
func (f function) times(slope Value) Value { return f.Mul(f.dy, slope) }

// positive is dy where v > 0 and otherwise elsewhere.
func (f function) positive(v, dy, otherwise Value) Value {
	return f.where(f.compare("Greater", v, f.num(0)), dy, otherwise)
}

// lessSquare is 1 − v².
func (f function) lessSquare(v Value) Value { return f.Minus(f.num(1), f.Mul(v, v)) }

// functionRules are the rules of functions of one value.
var functionRules = func() map[string]rule {
	out := map[string]rule{}
	for op, derivative := range derivatives {
		out[op] = func(g *Graph, n *infer.Node, _ int, dy []Value) (Value, error) {
			return derivative(function{g, n, n.Inputs[0], n.Outputs[0], dy[0]}), nil
		}
	}
	return out
}()

// derivatives are f'(x)·dy. At a kink, the derivative is that of PyTorch.
var derivatives = map[string]func(f function) Value{
	"Abs":        func(f function) Value { return f.times(f.unary("Sign", f.x)) },
	"Atan":       func(f function) Value { return f.Div(f.dy, f.Add(f.Mul(f.x, f.x), f.num(1))) },
	"Cos":        func(f function) Value { return f.Neg(f.times(f.unary("Sin", f.x))) },
	"Erf":        func(f function) Value { return f.scaled(f.times(f.Exp(f.Neg(f.Mul(f.x, f.x)))), 2/math.Sqrt(math.Pi)) },
	"Exp":        func(f function) Value { return f.times(f.y) },
	"Log":        func(f function) Value { return f.Div(f.dy, f.x) },
	"Neg":        func(f function) Value { return f.Neg(f.dy) },
	"Reciprocal": func(f function) Value { return f.Neg(f.times(f.Mul(f.y, f.y))) },
	"Sin":        func(f function) Value { return f.times(f.unary("Cos", f.x)) },
	"Tan":        func(f function) Value { return f.times(f.Add(f.Mul(f.y, f.y), f.num(1))) },
	// dy/(2√x), and 0 where √x is 0: the modulus in phase retrieval has the zero subgradient at the origin, and the curve of a sensor no finite slope at black.
	"Sqrt": func(f function) Value {
		return f.Div(f.dy, f.positive(f.y, f.Mul(f.y, f.num(2)), f.num(math.Inf(1))))
	},

	"Sigmoid":  func(f function) Value { return f.times(f.Mul(f.y, f.Minus(f.num(1), f.y))) },
	"Tanh":     func(f function) Value { return f.times(f.lessSquare(f.y)) },
	"Softplus": func(f function) Value { return f.times(f.unary("Sigmoid", f.x)) },
	"Softsign": func(f function) Value {
		d := f.Add(f.unary("Abs", f.x), f.num(1))
		return f.Div(f.dy, f.Mul(d, d))
	},
	"Relu": func(f function) Value {
		zero := f.num(0)
		return f.where(f.compare("Greater", f.y, zero), f.dy, zero)
	},
	"LeakyRelu": func(f function) Value {
		alpha, sign := f.float("alpha", 0.01), f.x
		if alpha > 0 {
			sign = f.y // the input need not be kept
		}
		return f.positive(sign, f.dy, f.scaled(f.dy, alpha))
	},
	"Elu": func(f function) Value {
		return f.positive(f.x, f.dy, f.times(f.Add(f.y, f.num(f.float("alpha", 1)))))
	},
	"Selu": func(f function) Value {
		alpha, gamma := f.float("alpha", 1.67326319217681884765625), f.float("gamma", 1.05070102214813232421875)
		return f.positive(f.x, f.scaled(f.dy, gamma), f.times(f.Add(f.y, f.num(alpha*gamma))))
	},
	"Celu": func(f function) Value {
		return f.positive(f.x, f.dy, f.times(f.Exp(f.scaled(f.x, 1/f.float("alpha", 1)))))
	},
	"ThresholdedRelu": func(f function) Value {
		return f.where(f.compare("Greater", f.x, f.num(f.float("alpha", 1))), f.dy, f.num(0))
	},
	"HardSigmoid": func(f function) Value {
		zero, one := f.num(0), f.num(1)
		inside := f.compare("And", f.compare("Greater", f.y, zero), f.compare("Less", f.y, one))
		return f.where(inside, f.scaled(f.dy, f.float("alpha", 0.2)), zero)
	},
	"HardSwish": func(f function) Value {
		slope := f.Add(f.scaled(f.x, 1.0/3), f.num(0.5))
		slope = f.where(f.compare("Greater", f.x, f.num(3)), f.num(1), slope)
		return f.times(f.where(f.compare("Less", f.x, f.num(-3)), f.num(0), slope))
	},
	"Gelu": geluDerivative,
	// The derivative of x·t with t = tanh(softplus x): t + x·σ(x)·(1−t²).
	"Mish": func(f function) Value {
		t := f.unary("Tanh", f.unary("Softplus", f.x))
		return f.times(f.Add(t, f.Mul(f.Mul(f.x, f.unary("Sigmoid", f.x)), f.lessSquare(t))))
	},
}

// geluDerivative is Φ(x) + x·φ(x), or the derivative of the approximation with tanh.
func geluDerivative(f function) Value {
	x, one := f.x, f.num(1)
	if f.n.Text("approximate", "none") == "tanh" {
		const a, b = 0.7978845608028654, 0.044715 // √(2/π)
		square := f.Mul(x, x)
		t := f.unary("Tanh", f.scaled(f.Mul(x, f.Add(f.scaled(square, b), one)), a))
		inner := f.scaled(f.Add(f.scaled(square, 3*b), one), a)
		slope := f.Add(f.Add(t, one), f.Mul(f.Mul(x, inner), f.lessSquare(t)))
		return f.times(f.scaled(slope, 0.5))
	}
	cdf := f.scaled(f.Add(f.unary("Erf", f.scaled(x, math.Sqrt2/2)), one), 0.5)
	pdf := f.scaled(f.Exp(f.scaled(f.Mul(x, x), -0.5)), 1/math.Sqrt(2*math.Pi))
	return f.times(f.Add(cdf, f.Mul(x, pdf)))
}

// smallest is a divisor instead of 0.
func smallest(t DType) float64 {
	if t == Float16 {
		return 6e-5 // the smallest normal number
	}
	return 1e-12
}
