package onnx

import (
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
	order, active := g.between(x, y)
	grads := map[string]Value{y.Name: seed}
	for _, p := range slices.Backward(order) {
		if err := g.backward(p, active, grads); err != nil {
			return Value{}, err
		}
	}
	if dx, ok := grads[x.Name]; ok {
		return dx, nil
	}
	return g.zeros(x.DType, x.Dims), nil
}

// backward adds the gradients of a node's inputs to grads.
func (g *Graph) backward(p *onnxpb.NodeProto, active map[string]bool, grads map[string]Value) error {
	dy, used := make([]Value, len(p.Output)), false
	for i, out := range p.Output {
		dy[i] = grads[out]
		used = used || dy[i].Name != ""
	}
	if !used {
		return nil
	}
	fail := func(err error) error {
		return fmt.Errorf("differentiate %s %q: %w", p.OpType, nameOf(p), err)
	}
	n, r := g.built(p.Output[0]), ruleOf(p.OpType)
	if n == nil || r == nil {
		return fail(ErrNoGradient)
	}
	for k, in := range n.inputs {
		if !active[in.Name] {
			continue
		}
		dx, err := r(g, n, k, dy)
		if err != nil {
			return fail(err)
		}
		if dx.Name == "" {
			continue
		}
		if old, ok := grads[in.Name]; ok {
			dx = g.Add(old, dx)
		}
		grads[in.Name] = dx
	}
	return nil
}

// between lists the nodes on paths from x to y in the order of evaluation, and marks the values that depend on x.
func (g *Graph) between(x, y Value) (order []*onnxpb.NodeProto, active map[string]bool) {
	producers := map[string]*onnxpb.NodeProto{}
	for _, n := range g.scope() {
		for _, out := range n.Output {
			producers[out] = n
		}
	}
	active = map[string]bool{x.Name: true}
	seen := map[*onnxpb.NodeProto]bool{}
	// Models may list their nodes in any order.
	var visit func(name string)
	visit = func(name string) {
		n := producers[name]
		if n == nil || seen[n] || name == x.Name {
			return
		}
		seen[n] = true
		on := false
		for _, in := range slices.Concat(n.Input, captured(n)) {
			visit(in)
			on = on || active[in]
		}
		if !on || piecewiseConstant(n) {
			return
		}
		order = append(order, n)
		for _, out := range n.Output {
			active[out] = out != ""
		}
	}
	visit(y.Name)
	return order, active
}

// scope lists the nodes so far of g and of the graphs around it.
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

// nameOf returns a node's name, or that of its first output.
func nameOf(n *onnxpb.NodeProto) string {
	if n.Name == "" && len(n.Output) > 0 {
		return n.Output[0]
	}
	return n.Name
}
