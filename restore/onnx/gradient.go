package onnx

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"ddiff/restore/onnx/onnxpb"
)

// ErrNoGradient: a node between x and y has no gradient rule.
var ErrNoGradient = errors.New("operation has no gradient rule")

// Gradient adds to g the vector-Jacobian product Jᵀ·seed of the expression from x to y,
// where seed has the shape of y and the result the shape of x. It is exact reverse mode:
// for a linear y = A(x) it is the adjoint Aᵀ·seed. When y does not depend on x the result
// is zero.
//
// Only built operations have rules. Gradient returns ErrNoGradient, which names the node, when
// y depends on x through an operation without one, a Loop or a node of an inlined model.
func (g *Graph) Gradient(y, x, seed Value) (Value, error) {
	if !slices.Equal(y.Dims, seed.Dims) {
		panic(fmt.Sprintf("onnx: seed %v for a value of shape %v", seed.Dims, y.Dims))
	}
	active := map[string]bool{x.Name: true} // values that depend on x
	var order []*onnxpb.NodeProto           // nodes that depend on x
	for _, n := range g.scope() {
		if slices.ContainsFunc(append(captured(n), n.Input...), func(in string) bool { return active[in] }) {
			order = append(order, n)
			for _, out := range n.Output {
				active[out] = true
			}
		}
	}
	grads := map[string]Value{y.Name: seed}
	for _, p := range slices.Backward(order) {
		i := slices.IndexFunc(p.Output, func(out string) bool { return grads[out].Name != "" })
		if i < 0 {
			continue
		}
		n := g.built(p.Output[i])
		if n == nil || rules[n.op] == nil {
			return Value{}, fmt.Errorf("differentiate %s %q: %w", p.OpType, cmp.Or(p.Name, p.Output[i]), ErrNoGradient)
		}
		dy := grads[n.output.Name]
		for k, in := range n.inputs {
			if !active[in.Name] {
				continue
			}
			dx, err := rules[n.op](g, n, k, dy)
			if err != nil {
				return Value{}, fmt.Errorf("differentiate %s %q: %w", n.op, p.Name, err)
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

// scope lists the nodes so far of g and of the graphs around it, in the order of evaluation.
func (g *Graph) scope() []*onnxpb.NodeProto {
	if g.outer == nil {
		return g.raw
	}
	return slices.Concat(g.outer.scope(), g.raw)
}

// built returns the built node with the output, of g or of a graph around it; nil for none.
func (g *Graph) built(output string) *node {
	for ; g != nil; g = g.outer {
		if n := g.nodes[output]; n != nil {
			return n
		}
	}
	return nil
}

// rule builds the gradient of input k of n from the gradient dy of its output.
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
	if slices.Equal(dy.Dims, dims) {
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

// sqrtRule builds dy/(2√x), and about 0 where √x is 0: the modulus in phase retrieval has the zero subgradient at the
// origin.
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

// sliceRule reverses a reversal and pads a range with zeros.
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
