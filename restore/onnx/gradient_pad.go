package onnx

import (
	"ddiff/internal/restore/onnx/infer"
)

// padRule takes the gradient of the input's own elements and adds that of their copies in the margins, axis by axis.
func padRule(g *Graph, n *infer.Node, k int, dy []Value) (Value, error) {
	mode := n.Text("mode", "constant")
	if k > 0 {
		return Value{}, n.Refuse("a variable margin")
	}
	before, after, err := g.facts.Margins(n)
	if err != nil {
		return Value{}, n.Refuse("its margins depend on data")
	}
	d := dy[0]
	for ax, length := range n.Inputs[0].Dims {
		b, a := before[ax], after[ax]
		own := d
		if b != 0 || a != 0 {
			// Negative margins remove elements, whose gradient is zero.
			own = g.padded(g.Slice(d, ax, max(b, 0), max(b, 0)+length+min(b, 0)+min(a, 0)), ax, max(-b, 0), max(-a, 0))
		}
		if mode != "constant" {
			if b < 0 || a < 0 {
				return Value{}, n.Refuse("negative margins in mode %s", mode)
			}
			if own, err = g.folded(n, mode, d, own, ax, b, a); err != nil {
				return Value{}, err
			}
		}
		d = own
	}
	return d, nil
}

// folded adds the gradients of the margins of one axis to those of the elements that they repeat.
func (g *Graph) folded(n *infer.Node, mode string, d, own Value, ax, before, after int) (Value, error) {
	length, end := own.Dims[ax], d.Dims[ax]
	var left, right Value
	if before > 0 {
		left = g.Slice(d, ax, 0, before)
	}
	if after > 0 {
		right = g.Slice(d, ax, end-after, end)
	}
	// Where the part of a margin belongs, and how it is folded.
	var fold func(part Value) Value
	var first, last int
	switch {
	case mode == "edge":
		fold = func(part Value) Value { return g.ReduceSum(part, ax) }
		first, last = 0, length-1
	case mode == "reflect" && before < length && after < length:
		fold = func(part Value) Value { return g.Reverse(part, ax) }
		first, last = 1, length-1-after
	case mode == "wrap" && before <= length && after <= length:
		fold = func(part Value) Value { return part }
		first, last = length-before, 0
	default:
		return Value{}, n.Refuse("mode %s with margins of %d and %d for %d elements", mode, before, after, length)
	}
	add := func(part Value, start int) {
		part = fold(part)
		own = g.Add(own, g.padded(part, ax, start, length-start-part.Dims[ax]))
	}
	if before > 0 {
		add(left, first)
	}
	if after > 0 {
		add(right, last)
	}
	return own, nil
}
