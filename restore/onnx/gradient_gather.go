package onnx

import (
	"slices"

	"ddiff/internal/restore/onnx/infer"
)

// gatherRules are the rules of look-ups by index.
var gatherRules = map[string]rule{
	"Gather": gatherRule, "GatherElements": gatherElementsRule, "GatherND": gatherNDRule, "ScatterND": scatterRule,
	"ScatterElements": scatterRule, "TopK": topRule,
}

// gatherRule adds the gradient to the elements that were taken.
func gatherRule(g *Graph, n *infer.Node, _ int, dy []Value) (Value, error) {
	in, index := n.Inputs[0].Dims, n.Inputs[1]
	ax := infer.Axis(n.Integer("axis", 0), len(in))
	count := index.Size()
	d := g.reshaped(dy[0], slices.Concat(in[:ax], []int{count}, in[ax+1:]))
	at, known := g.facts.IntegersOf(index)
	if known {
		if d, ok := g.placed(d, ax, in[ax], at); ok {
			return d, nil
		}
	}
	pre, post := infer.Size(in[:ax]), infer.Size(in[ax+1:])
	d = g.reshaped(d, []int{pre, count, post})
	apart := known && distinct(at, in[ax])
	if in[ax]*count >= largeMatrix && (apart || g.opset >= scatterAdd) {
		places, attrs := g.Expand(g.Reshape(index, 1, count, 1), pre, count, post), map[string]any{"axis": 1}
		if !apart {
			attrs["reduction"] = "add"
		}
		zeros := g.zeros(d.DType, []int{pre, in[ax], post})
		return g.reshaped(g.Apply("ScatterElements", d.DType, zeros.Dims, attrs, zeros, places, d), in), nil
	}
	// The rows of a matrix of zeros and ones choose the elements.
	flat := g.Reshape(index, count)
	hot := g.Apply("OneHot", dy[0].DType, []int{in[ax], count}, map[string]any{"axis": 0}, flat, g.Ints(in[ax]), g.offOn(dy[0].DType))
	return g.reshaped(g.MatMul(hot, d), in), nil
}

// distinct reports whether no two places of an axis of a length are equal.
func distinct(at []int, length int) bool {
	taken := make(map[int]bool, len(at))
	for _, p := range at {
		taken[infer.Axis(p, length)] = true
	}
	return len(taken) == len(at)
}

// offOn is the pair 0, 1.
func (g *Graph) offOn(t DType) Value {
	v := g.Const([]float32{0, 1}, 2)
	if t != Float {
		v = g.Cast(v, t)
	}
	return v
}

// placed writes slices of an axis to the known places of an axis of a length, if these are evenly spaced.
func (g *Graph) placed(v Value, ax, length int, at []int) (Value, bool) {
	if len(at) == 0 {
		return v, false
	}
	places := make([]int, len(at))
	for i, p := range at {
		places[i] = infer.Axis(p, length)
	}
	step := 1
	if len(places) > 1 {
		step = places[1] - places[0]
	}
	for i, p := range places {
		if step == 0 || p != places[0]+i*step {
			return v, false
		}
	}
	lowest := min(places[0], places[len(places)-1])
	if step < 0 {
		v, step = g.Reverse(v, ax), -step
	}
	v = g.spread(v, ax, step)
	return g.padded(v, ax, lowest, length-lowest-v.Dims[ax]), true
}

// scatterAdd is the first operator set with ScatterElements and ScatterND of sums.
const scatterAdd = 16

// scatter adds updates into zeros of the given dimensions.
func (g *Graph) scatter(n *infer.Node, op string, dims []int, attrs map[string]any, index, updates Value) (Value, error) {
	if g.opset < scatterAdd {
		return Value{}, n.Refuse("operator set %d: its gradient needs %d", g.opset, scatterAdd)
	}
	attrs["reduction"] = "add"
	return g.Apply(op, updates.DType, dims, attrs, g.zeros(updates.DType, dims), index, updates), nil
}

func gatherElementsRule(g *Graph, n *infer.Node, _ int, dy []Value) (Value, error) {
	return g.scatter(n, "ScatterElements", n.Inputs[0].Dims, map[string]any{"axis": n.Integer("axis", 0)}, n.Inputs[1], dy[0])
}

func gatherNDRule(g *Graph, n *infer.Node, _ int, dy []Value) (Value, error) {
	if n.Integer("batch_dims", 0) != 0 {
		return Value{}, n.Refuse("batch_dims")
	}
	return g.scatter(n, "ScatterND", n.Inputs[0].Dims, map[string]any{}, n.Inputs[1], dy[0])
}

// scatterRule covers the replacement of elements, and sums.
func scatterRule(g *Graph, n *infer.Node, k int, dy []Value) (Value, error) {
	r := n.Text("reduction", "none")
	if r != "none" && r != "add" {
		return Value{}, n.Refuse("reduction %s", r)
	}
	index, updates := n.Inputs[1], n.Inputs[2]
	gather, attrs := "GatherND", map[string]any(nil)
	if n.Op == "ScatterElements" {
		gather, attrs = "GatherElements", map[string]any{"axis": n.Integer("axis", 0)}
	}
	if k == 2 {
		return g.Apply(gather, dy[0].DType, updates.Dims, attrs, dy[0], index), nil
	}
	if r == "add" {
		return dy[0], nil
	}
	return g.Apply(n.Op, dy[0].DType, dy[0].Dims, attrs, dy[0], index, g.zeros(dy[0].DType, updates.Dims)), nil
}

// topRule writes the gradient of the largest elements to their places.
func topRule(g *Graph, n *infer.Node, _ int, dy []Value) (Value, error) {
	if dy[0].Name == "" || n.Outputs[1].Name == "" {
		return Value{}, n.Refuse("without its indices")
	}
	in := n.Inputs[0]
	attrs := map[string]any{"axis": infer.Axis(n.Integer("axis", -1), in.Rank())}
	return g.Apply("ScatterElements", dy[0].DType, in.Dims, attrs, g.zeros(dy[0].DType, in.Dims), n.Outputs[1], dy[0]), nil
}
