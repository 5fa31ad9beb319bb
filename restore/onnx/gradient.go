package onnx

import (
	"fmt"
	"slices"

	"ddiff/internal/restore/onnx/infer"
	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/internal/restore/onnx/onnxpb"
)

// ErrNoGradient: a node between x and y has no gradient rule.
var ErrNoGradient = infer.ErrNoGradient

// Gradient adds to g the vector-Jacobian product Jᵀ·seed of the expression from x to y,
// where seed has the shape of y and the result the shape of x. It is exact reverse mode:
// for a linear y = A(x) it is the adjoint Aᵀ·seed. When y does not depend on x the result
// is zero.
//
// Nodes of inlined models are differentiated like built ones; their shapes follow from those of the inputs. Gradient
// returns ErrNoGradient, which names the node, when y depends on x through an operation without a rule, a sub-graph (If,
// Loop) or a shape that depends on data. Operations such as Floor, ArgMax and comparisons have the derivative zero.
func (g *Graph) Gradient(y, x, seed Value) (Value, error) {
	if !slices.Equal(y.Dims, seed.Dims) {
		panic(fmt.Sprintf("onnx: seed %v for a value of shape %v", seed.Dims, y.Dims))
	}
	order, active := g.between(x, y)
	if err := g.ruled(order); err != nil {
		return Value{}, err
	}
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
	n, err := g.facts.Understand(p)
	if err != nil {
		return undifferentiated(p, fmt.Errorf("%w: %w", ErrNoGradient, err))
	}
	for k, in := range n.Inputs {
		if !active[in.Name] || in.DType == Int64 { // places, as those of TopK, have the derivative zero
			continue
		}
		dx, err := g.derive(ruleOf(n.Op), n, k, dy)
		if err != nil {
			return undifferentiated(p, err)
		}
		if dx.Name == "" {
			continue
		}
		if old, ok := grads[in.Name]; ok {
			dx = g.accumulate(old, dx)
		}
		grads[in.Name] = dx
	}
	return nil
}

// accumulate returns a + b, as a difference where one of them is the negative of another value.
func (g *Graph) accumulate(a, b Value) Value {
	for _, v := range [][2]Value{{a, b}, {b, a}} {
		if p := g.facts.Producer(v[1].Name); p != nil && p.OpType == "Neg" && infer.Standard(p) {
			return g.Minus(v[0], Value{Name: p.Input[0], DType: v[1].DType, Dims: v[1].Dims})
		}
	}
	return g.Add(a, b)
}

// derive applies a rule. A node of a file that its rule cannot handle is an error, not a panic.
func (g *Graph) derive(r rule, n *infer.Node, k int, dy []Value) (dx Value, err error) {
	in := n.Inputs[k]
	if in.Size() == 0 || n.Outputs[0].Size() == 0 {
		return g.zeros(in.DType, in.Dims), nil
	}
	defer func() {
		if fault := recover(); fault != nil {
			err = n.Refuse("%v", fault)
		}
	}()
	dx, err = r(g, n, k, dy)
	if err == nil && dx.Name != "" && (dx.DType != in.DType || !slices.Equal(dx.Dims, in.Dims)) {
		err = n.Refuse("its rule returned %v for an input of %v", dx.Dims, in.Dims)
	}
	return dx, err
}

// between lists the nodes on paths from x to y in the order of evaluation, and marks the values that depend on x.
func (g *Graph) between(x, y Value) (order []*onnxpb.NodeProto, active map[string]bool) {
	active = map[string]bool{x.Name: true}
	seen := map[*onnxpb.NodeProto]bool{}
	// Models may list their nodes in any order, and a path may be too long for a recursion.
	type visit struct {
		node   *onnxpb.NodeProto
		inputs []string // that are not visited yet
	}
	var open []visit
	enter := func(name string) {
		if n := g.facts.Producer(name); n != nil && !seen[n] && name != x.Name {
			seen[n] = true
			open = append(open, visit{n, slices.Concat(n.Input, modelfile.Captured(n))})
		}
	}
	for enter(y.Name); len(open) > 0; {
		last := &open[len(open)-1]
		if len(last.inputs) > 0 {
			in := last.inputs[0]
			last.inputs = last.inputs[1:]
			enter(in)
			continue
		}
		n := last.node
		open = open[:len(open)-1]
		on := slices.ContainsFunc(slices.Concat(n.Input, modelfile.Captured(n)), func(in string) bool { return active[in] })
		if !on || piecewiseConstant(n) {
			continue
		}
		order = append(order, n)
		for _, out := range n.Output {
			active[out] = out != ""
		}
	}
	return order, active
}

// Depends reports whether Gradient differentiates y by x: y is x, or a path of nodes with a derivative leads from x to y.
func (g *Graph) Depends(y, x Value) bool {
	_, active := g.between(x, y)
	return active[y.Name]
}

// ruled returns ErrNoGradient for the first node without a rule.
func (g *Graph) ruled(nodes []*onnxpb.NodeProto) error {
	for _, p := range nodes {
		if ruleOf(p.OpType) == nil || !infer.Standard(p) {
			return undifferentiated(p, ErrNoGradient)
		}
	}
	return nil
}

// undifferentiated states the node that has no gradient.
func undifferentiated(p *onnxpb.NodeProto, err error) error {
	return fmt.Errorf("differentiate %s %q: %w", p.OpType, infer.NodeName(p), err)
}
