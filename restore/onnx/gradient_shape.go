package onnx

import (
	"slices"

	"ddiff/internal/restore/onnx/infer"
)

// shapeRules are the rules of operations that move elements.
var shapeRules = map[string]rule{
	"Identity":     identityRule,
	"Dropout":      dropoutRule,
	"Cast":         castRule,
	"CastLike":     castRule,
	"Reshape":      reshapeRule,
	"Flatten":      reshapeRule,
	"Squeeze":      reshapeRule,
	"Unsqueeze":    reshapeRule,
	"Transpose":    transposeRule,
	"Slice":        sliceRule,
	"Split":        splitRule,
	"Concat":       concatRule,
	"Expand":       expandRule,
	"Tile":         tileRule,
	"Pad":          padRule,
	"DepthToSpace": depthToSpaceRule,
	"SpaceToDepth": spaceToDepthRule,
	"Trilu":        triluRule,
	"CumSum":       cumSumRule,
}

func identityRule(_ *Graph, _ *infer.Node, _ int, dy []Value) (Value, error) { return dy[0], nil }

// dropoutRule covers inference, where a Dropout changes nothing.
func dropoutRule(g *Graph, n *infer.Node, _ int, dy []Value) (Value, error) {
	if n.Has(2) {
		if training, ok := g.facts.IntegersOf(n.Inputs[2]); !ok || training[0] != 0 {
			return Value{}, n.Refuse("training mode")
		}
	}
	return dy[0], nil
}

// castRule converts the gradient to the type of the input. A conversion to integers is piecewise constant.
func castRule(g *Graph, n *infer.Node, k int, dy []Value) (Value, error) {
	if k > 0 {
		return Value{}, nil // CastLike uses the type of its second input only
	}
	return g.Cast(dy[0], n.Inputs[0].DType), nil
}

func transposeRule(g *Graph, n *infer.Node, _ int, dy []Value) (Value, error) {
	perm := infer.Permutation(n)
	inverse := make([]int, len(perm))
	for i, p := range perm {
		inverse[p] = i
	}
	return g.Transpose(dy[0], inverse...), nil
}

// reshapeRule restores the input's shape.
func reshapeRule(g *Graph, n *infer.Node, _ int, dy []Value) (Value, error) {
	return g.Reshape(dy[0], n.Inputs[0].Dims...), nil
}

func expandRule(g *Graph, n *infer.Node, _ int, dy []Value) (Value, error) {
	return g.unbroadcast(dy[0], n.Inputs[0].Dims), nil
}

// splitRule joins the gradients of the parts.
func splitRule(g *Graph, n *infer.Node, _ int, dy []Value) (Value, error) {
	parts := make([]Value, 0, len(dy))
	for i, d := range dy {
		if n.Outputs[i].Size() == 0 {
			continue
		}
		if d.Name == "" {
			d = g.zeros(n.Inputs[0].DType, n.Outputs[i].Dims)
		}
		parts = append(parts, d)
	}
	ax := infer.Axis(n.Integer("axis", 0), n.Inputs[0].Rank())
	joined := g.Concat(ax, parts...)
	rest := n.Inputs[0].Dims[ax] - joined.Dims[ax] // parts without an output
	return g.padded(joined, ax, 0, rest), nil
}

// tileRule sums over the copies.
func tileRule(g *Graph, n *infer.Node, _ int, dy []Value) (Value, error) {
	var apart, axes []int
	for i, d := range n.Inputs[0].Dims {
		axes = append(axes, 2*i)
		apart = append(apart, n.Outputs[0].Dims[i]/d, d)
	}
	if len(axes) == 0 {
		return dy[0], nil
	}
	return g.Reshape(g.ReduceSum(g.Reshape(dy[0], apart...), axes...), n.Inputs[0].Dims...), nil
}

// triluRule takes the same triangle.
func triluRule(g *Graph, n *infer.Node, _ int, dy []Value) (Value, error) {
	in := []Value{dy[0]}
	if n.Has(1) {
		in = append(in, n.Inputs[1])
	}
	return g.op("Trilu", map[string]any{"upper": n.Integer("upper", 1)}, in...), nil
}

// cumSumRule sums from the other end.
func cumSumRule(g *Graph, n *infer.Node, _ int, dy []Value) (Value, error) {
	attrs := map[string]any{"exclusive": n.Integer("exclusive", 0), "reverse": 1 - n.Integer("reverse", 0)}
	return g.op("CumSum", attrs, dy[0], n.Inputs[1]), nil
}

func spaceToDepthRule(g *Graph, n *infer.Node, _ int, dy []Value) (Value, error) {
	attrs := map[string]any{"blocksize": n.Integer("blocksize", 1)}
	return g.op("DepthToSpace", attrs, dy[0]), nil
}

func depthToSpaceRule(g *Graph, n *infer.Node, _ int, dy []Value) (Value, error) {
	b, in := n.Integer("blocksize", 1), n.Inputs[0].Dims
	if n.Text("mode", "DCR") == "DCR" {
		return g.op("SpaceToDepth", map[string]any{"blocksize": b}, dy[0]), nil
	}
	apart := g.Reshape(dy[0], in[0], in[1]/(b*b), in[2], b, in[3], b)
	return g.Reshape(g.Transpose(apart, 0, 1, 3, 5, 2, 4), in...), nil
}

// sliceRule writes the gradient into zeros, axis by axis.
func sliceRule(g *Graph, n *infer.Node, _ int, dy []Value) (Value, error) {
	cuts, err := g.facts.Cuts(n)
	if err != nil {
		return Value{}, err
	}
	d := dy[0]
	for _, c := range slices.Backward(cuts) {
		if c.Step < 0 {
			d = g.Reverse(d, c.Axis)
		}
		d = g.spread(d, c.Axis, max(c.Step, -c.Step))
		lowest := c.Start
		if c.Step < 0 {
			lowest += (c.Count - 1) * c.Step
		}
		d = g.padded(d, c.Axis, lowest, n.Inputs[0].Dims[c.Axis]-lowest-d.Dims[c.Axis])
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

func concatRule(g *Graph, n *infer.Node, k int, dy []Value) (Value, error) {
	in := n.Inputs[k]
	ax := infer.Axis(n.Integer("axis", 0), in.Rank())
	start := 0
	for _, before := range n.Inputs[:k] {
		start += before.Dims[ax]
	}
	return g.Slice(dy[0], ax, start, start+in.Dims[ax]), nil
}
