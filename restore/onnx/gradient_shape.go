package onnx

import "slices"

// shapeRules are the rules of operations that move elements.
var shapeRules = map[string]rule{
	"Identity":  func(_ *Graph, _ *node, _ int, dy []Value) (Value, error) { return dy[0], nil },
	"Transpose": transposeRule,
	"Reshape":   reshapeRule,
	"Slice":     sliceRule,
	"Concat":    concatRule,
	"Cast":      castRule,
}

// castRule converts the gradient to the type of the input. A conversion to integers has no rule.
func castRule(g *Graph, n *node, _ int, dy []Value) (Value, error) {
	return g.Cast(dy[0], n.inputs[0].DType), nil
}

func transposeRule(g *Graph, n *node, _ int, dy []Value) (Value, error) {
	perm := n.integers("perm")
	inverse := make([]int, n.inputs[0].Rank())
	for i := range inverse {
		if perm == nil {
			inverse[i] = len(inverse) - 1 - i
		} else {
			inverse[perm[i]] = i
		}
	}
	return g.Transpose(dy[0], inverse...), nil
}

// reshapeRule restores the input's shape.
func reshapeRule(g *Graph, n *node, _ int, dy []Value) (Value, error) {
	return g.Reshape(dy[0], n.inputs[0].Dims...), nil
}

// sliceRule writes the gradient into zeros, axis by axis.
func sliceRule(g *Graph, n *node, _ int, dy []Value) (Value, error) {
	cuts, err := g.cuts(n)
	if err != nil {
		return Value{}, err
	}
	d := dy[0]
	for _, c := range slices.Backward(cuts) {
		if c.step < 0 {
			d = g.Reverse(d, c.axis)
		}
		d = g.spread(d, c.axis, max(c.step, -c.step))
		lowest := c.start
		if c.step < 0 {
			lowest += (c.count - 1) * c.step
		}
		d = g.padded(d, c.axis, lowest, n.inputs[0].Dims[c.axis]-lowest-d.Dims[c.axis])
	}
	return d, nil
}

// spread puts step−1 zeros between the elements of an axis.
func (g *Graph) spread(v Value, axis, step int) Value {
	if step == 1 {
		return v
	}
	count := v.Dims[axis]
	apart := g.Reshape(v, slices.Insert(slices.Clone(v.Dims), axis+1, 1)...)
	dims := slices.Clone(v.Dims)
	dims[axis] = count * step
	wide := g.Reshape(g.padded(apart, axis+1, 0, step-1), dims...)
	return g.Slice(wide, axis, 0, (count-1)*step+1)
}

// padded puts zeros before and after the elements of an axis.
func (g *Graph) padded(v Value, axis, before, after int) Value {
	zeros := func(length int) Value {
		dims := slices.Clone(v.Dims)
		dims[axis] = length
		return g.zeros(v.DType, dims)
	}
	parts := []Value{v}
	if before > 0 {
		parts = append([]Value{zeros(before)}, parts...)
	}
	if after > 0 {
		parts = append(parts, zeros(after))
	}
	if len(parts) == 1 {
		return v
	}
	return g.Concat(axis, parts...)
}

func concatRule(g *Graph, n *node, k int, dy []Value) (Value, error) {
	in := n.inputs[k]
	ax := axis(n.integer("axis", 0), in.Rank())
	start := 0
	for _, before := range n.inputs[:k] {
		start += before.Dims[ax]
	}
	return g.Slice(dy[0], ax, start, start+in.Dims[ax]), nil
}
