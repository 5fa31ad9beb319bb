package onnx

import (
	"errors"
	"fmt"
)

// ErrNoGradient: reverse mode met an operation whose derivative it does not know.
var ErrNoGradient = errors.New("operation has no gradient rule")

// Gradient adds to g the vector-Jacobian product Jᵀ·seed of the expression from x to y,
// where seed has the shape of y and the result the shape of x. It is exact reverse mode:
// for a linear y = A(x) it is the adjoint Aᵀ·seed. When y does not depend on x the result
// is zero. Only built operations are differentiated; ErrNoGradient names the first one
// that cannot be.
func (g *Graph) Gradient(y, x, seed Value) (Value, error) {
	if !equalDims(y.Dims, seed.Dims) {
		panic(fmt.Sprintf("onnx: seed %v for a value of shape %v", seed.Dims, y.Dims))
	}
	// Which of the nodes so far depend on x.
	active := map[string]bool{x.Name: true}
	var order []*node
	for _, n := range g.nodes {
		for _, in := range n.inputs {
			if active[in.Name] {
				active[n.output.Name] = true
				order = append(order, n)
				break
			}
		}
	}
	grads := map[string]Value{y.Name: seed}
	for i := len(order) - 1; i >= 0; i-- {
		n := order[i]
		dy, ok := grads[n.output.Name]
		if !ok {
			continue
		}
		rule, ok := rules[n.op]
		if !ok {
			return Value{}, fmt.Errorf("differentiate %s: %w", n.op, ErrNoGradient)
		}
		for k, in := range n.inputs {
			if !active[in.Name] {
				continue
			}
			dx, err := rule(g, n, k, dy)
			if err != nil {
				return Value{}, fmt.Errorf("differentiate %s: %w", n.op, err)
			}
			if old, ok := grads[in.Name]; ok {
				dx = g.Add(old, dx)
			}
			grads[in.Name] = dx
		}
	}
	if dx, ok := grads[x.Name]; ok {
		return dx, nil
	}
	return g.Expand(g.Scalar(0), x.Dims...), nil
}

// rule gives the gradient for input k of n, from the gradient dy of its output.
type rule func(g *Graph, n *node, k int, dy Value) (Value, error)

var rules = map[string]rule{
	"Add": func(g *Graph, n *node, k int, dy Value) (Value, error) {
		return g.unbroadcast(dy, n.inputs[k].Dims), nil
	},
	"Sub":       subRule,
	"Mul":       mulRule,
	"Div":       divRule,
	"Neg":       func(g *Graph, _ *node, _ int, dy Value) (Value, error) { return g.Neg(dy), nil },
	"Exp":       func(g *Graph, n *node, _ int, dy Value) (Value, error) { return g.Mul(dy, n.output), nil },
	"Log":       func(g *Graph, n *node, _ int, dy Value) (Value, error) { return g.Div(dy, n.inputs[0]), nil },
	"Sqrt":      sqrtRule,
	"Clip":      clipRule,
	"MatMul":    matMulRule,
	"Transpose": transposeRule,
	"Reshape": func(g *Graph, n *node, _ int, dy Value) (Value, error) {
		return g.Reshape(dy, n.inputs[0].Dims...), nil
	},
	"Slice":     sliceRule,
	"Concat":    concatRule,
	"ReduceSum": func(g *Graph, n *node, _ int, dy Value) (Value, error) { return g.Expand(dy, n.inputs[0].Dims...), nil },
}

// unbroadcast sums dy over the dimensions along which dims was repeated.
func (g *Graph) unbroadcast(dy Value, dims []int) Value {
	if equalDims(dy.Dims, dims) {
		return dy
	}
	lead := dy.Rank() - len(dims)
	var axes []int
	for i, d := range dy.Dims {
		if i < lead || dims[i-lead] != d {
			axes = append(axes, i)
		}
	}
	return g.Reshape(g.ReduceSum(dy, axes...), dims...)
}

func subRule(g *Graph, n *node, k int, dy Value) (Value, error) {
	if k == 1 {
		dy = g.Neg(dy)
	}
	return g.unbroadcast(dy, n.inputs[k].Dims), nil
}

func mulRule(g *Graph, n *node, k int, dy Value) (Value, error) {
	return g.unbroadcast(g.Mul(dy, n.inputs[1-k]), n.inputs[k].Dims), nil
}

func divRule(g *Graph, n *node, k int, dy Value) (Value, error) {
	a, b := n.inputs[0], n.inputs[1]
	d := g.Div(dy, b)
	if k == 1 {
		d = g.Neg(g.Mul(d, g.Div(a, b)))
	}
	return g.unbroadcast(d, n.inputs[k].Dims), nil
}

// sqrtRule: d√x = dy/(2√x), and 0 where √x is 0: the modulus in phase retrieval takes the
// zero subgradient at the origin.
func sqrtRule(g *Graph, n *node, _ int, dy Value) (Value, error) {
	const tiny = 1e-12
	return g.Div(dy, g.Max(g.Mul(n.output, g.Scalar(2)), g.Scalar(tiny))), nil
}

func clipRule(g *Graph, n *node, k int, dy Value) (Value, error) {
	if k != 0 {
		return Value{}, fmt.Errorf("variable limits: %w", ErrNoGradient)
	}
	return g.Mul(dy, g.inside(n.inputs[0], n.inputs[1], n.inputs[2])), nil
}

func matMulRule(g *Graph, n *node, k int, dy Value) (Value, error) {
	other := g.transposeLast(n.inputs[1-k])
	if k == 0 {
		return g.unbroadcast(g.MatMul(dy, other), n.inputs[0].Dims), nil
	}
	return g.unbroadcast(g.MatMul(other, dy), n.inputs[1].Dims), nil
}

func (g *Graph) transposeLast(v Value) Value {
	perm := make([]int, v.Rank())
	for i := range perm {
		perm[i] = i
	}
	r := len(perm)
	perm[r-2], perm[r-1] = r-1, r-2
	return g.Transpose(v, perm...)
}

func transposeRule(g *Graph, n *node, _ int, dy Value) (Value, error) {
	perm := n.attrs["perm"].([]int)
	inverse := make([]int, len(perm))
	for i, p := range perm {
		inverse[p] = i
	}
	return g.Transpose(dy, inverse...), nil
}

// sliceRule: a reversal undoes itself; a range is put back between zeros.
func sliceRule(g *Graph, n *node, _ int, dy Value) (Value, error) {
	axis := n.attrs["axis"].(int)
	if _, ok := n.attrs["reverse"]; ok {
		return g.Reverse(dy, axis), nil
	}
	dims := n.inputs[0].Dims
	parts := []Value{dy}
	zeros := func(length int) Value {
		z := append([]int(nil), dims...)
		z[axis] = length
		return g.Expand(g.Scalar(0), z...)
	}
	if start := n.attrs["start"].(int); start > 0 {
		parts = append([]Value{zeros(start)}, parts...)
	}
	if end := n.attrs["end"].(int); end < dims[axis] {
		parts = append(parts, zeros(dims[axis]-end))
	}
	if len(parts) == 1 {
		return dy, nil
	}
	return g.Concat(axis, parts...), nil
}

func concatRule(g *Graph, n *node, k int, dy Value) (Value, error) {
	axis := n.attrs["axis"].(int)
	start := 0
	for _, in := range n.inputs[:k] {
		start += in.Dims[axis]
	}
	return g.Slice(dy, axis, start, start+n.inputs[k].Dims[axis]), nil
}
