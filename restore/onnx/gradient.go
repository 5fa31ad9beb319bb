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
	// Models may list their nodes in any order, so a pass over the nodes may miss some values.
	for scope, grown := g.scope(), true; grown; {
		grown, order = false, order[:0]
		for _, n := range scope {
			if !slices.ContainsFunc(append(captured(n), n.Input...), func(in string) bool { return active[in] }) {
				continue
			}
			order = append(order, n)
			for _, out := range n.Output {
				if out != "" && !active[out] {
					active[out], grown = true, true
				}
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
			if n.op == "Clip" && k > 0 {
				return Value{}, fmt.Errorf("differentiate %s %q: variable limits: %w", n.op, p.Name, ErrNoGradient)
			}
			dx := rules[n.op](g, n, k, dy)
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
type rule func(g *Graph, n *node, k int, dy Value) Value

var rules = map[string]rule{
	"Add": func(g *Graph, n *node, k int, dy Value) Value { return g.unbroadcast(dy, n.inputs[k].Dims) },
	"Sub": subRule,
	"Mul": func(g *Graph, n *node, k int, dy Value) Value {
		return g.unbroadcast(g.Mul(dy, n.inputs[1-k]), n.inputs[k].Dims)
	},
	"Div":  divRule,
	"Neg":  func(g *Graph, _ *node, _ int, dy Value) Value { return g.Neg(dy) },
	"Exp":  func(g *Graph, n *node, _ int, dy Value) Value { return g.Mul(dy, n.output) },
	"Log":  func(g *Graph, n *node, _ int, dy Value) Value { return g.Div(dy, n.inputs[0]) },
	"Sqrt": sqrtRule,
	"Clip": func(g *Graph, n *node, _ int, dy Value) Value {
		return g.Mul(dy, g.inside(n.inputs[0], n.inputs[1], n.inputs[2]))
	},
	"MatMul":    matMulRule,
	"Transpose": transposeRule,
	"Reshape":   func(g *Graph, n *node, _ int, dy Value) Value { return g.Reshape(dy, n.inputs[0].Dims...) },
	"Slice":     sliceRule,
	"Concat":    concatRule,
	"ReduceSum": func(g *Graph, n *node, _ int, dy Value) Value { return g.Expand(dy, n.inputs[0].Dims...) },
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

func subRule(g *Graph, n *node, k int, dy Value) Value {
	if k == 1 {
		dy = g.Neg(dy)
	}
	return g.unbroadcast(dy, n.inputs[k].Dims)
}

func divRule(g *Graph, n *node, k int, dy Value) Value {
	a, b := n.inputs[0], n.inputs[1]
	d := g.Div(dy, b)
	if k == 1 {
		d = g.Neg(g.Mul(d, g.Div(a, b)))
	}
	return g.unbroadcast(d, n.inputs[k].Dims)
}

// sqrtRule builds dy/(2√x), and about 0 where √x is 0: the modulus in phase retrieval has the zero subgradient at the
// origin.
func sqrtRule(g *Graph, n *node, _ int, dy Value) Value {
	const tiny = 1e-12
	return g.Div(dy, g.Max(g.Mul(n.output, g.Scalar(2)), g.Scalar(tiny)))
}

func matMulRule(g *Graph, n *node, k int, dy Value) Value {
	other := g.transposeLast(n.inputs[1-k])
	if k == 0 {
		return g.unbroadcast(g.MatMul(dy, other), n.inputs[0].Dims)
	}
	return g.unbroadcast(g.MatMul(other, dy), n.inputs[1].Dims)
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

func transposeRule(g *Graph, n *node, _ int, dy Value) Value {
	perm := n.attrs["perm"].([]int)
	inverse := make([]int, len(perm))
	for i, p := range perm {
		inverse[p] = i
	}
	return g.Transpose(dy, inverse...)
}

// sliceRule reverses a reversal and pads a range with zeros.
func sliceRule(g *Graph, n *node, _ int, dy Value) Value {
	axis := n.attrs["axis"].(int)
	if _, ok := n.attrs["reverse"]; ok {
		return g.Reverse(dy, axis)
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
		return dy
	}
	return g.Concat(axis, parts...)
}

func concatRule(g *Graph, n *node, k int, dy Value) Value {
	axis := n.attrs["axis"].(int)
	start := 0
	for _, in := range n.inputs[:k] {
		start += in.Dims[axis]
	}
	return g.Slice(dy, axis, start, start+n.inputs[k].Dims[axis])
}
