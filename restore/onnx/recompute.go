package onnx

import (
	"fmt"
	"slices"

	"ddiff/restore/onnx/infer"
	"ddiff/restore/onnx/onnxpb"
)

// Recompute makes later calls of Gradient divide the expression into blocks. Only the values between blocks are kept
// for the backward pass, which computes the values inside a block again before it needs them, at the cost of up to one
// more forward pass. About the square root of the number of layers needs the least memory. With 0 or 1 blocks, the
// default, all values that a rule reads are kept. The result is the same.
func (g *Graph) Recompute(blocks int) { g.blocks = blocks }

// split divides nodes into blocks of about equal size, where few bytes pass from one to the next.
func (g *Graph) split(order []*onnxpb.NodeProto, active map[string]bool) ([][]*onnxpb.NodeProto, error) {
	count := min(g.blocks, len(order))
	if count < 2 {
		return [][]*onnxpb.NodeProto{order}, nil
	}
	// passing[i] is the number of bytes that node i or a later one reads from nodes before i; made[i] is the number that
	// the nodes before i make.
	passing, made := make([]int, len(order)+1), make([]int, len(order)+1)
	born := map[string]int{}
	for i, p := range order {
		n, err := g.facts.Understand(p)
		if err != nil {
			return nil, undifferentiated(p, fmt.Errorf("%w: %w", ErrNoGradient, err))
		}
		made[i+1] = made[i]
		for _, out := range n.Outputs {
			if out.Name != "" {
				born[out.Name], made[i+1] = i, made[i+1]+bytesOf(out)
			}
		}
	}
	last := map[string]int{}
	for i, p := range order {
		for _, in := range g.understood(p).Inputs {
			if _, ok := born[in.Name]; ok && active[in.Name] {
				last[in.Name] = i
			}
		}
	}
	for name, end := range last {
		v, _ := g.facts.TypeOf(name)
		for i := born[name] + 1; i <= end; i++ {
			passing[i] += bytesOf(v)
		}
	}
	var out [][]*onnxpb.NodeProto
	from := 0
	for k := 1; k < count; k++ {
		low, _ := slices.BinarySearch(made, made[len(order)]*(2*k-1)/(2*count))
		high, _ := slices.BinarySearch(made, made[len(order)]*(2*k+1)/(2*count))
		at := -1
		for i := max(low, from+1); i < min(high, len(order)); i++ {
			if at < 0 || passing[i] < passing[at] {
				at = i
			}
		}
		if at < 0 {
			continue
		}
		out = append(out, order[from:at])
		from = at
	}
	return append(out, order[from:]), nil
}

// understood returns the record of a node that is understood.
func (g *Graph) understood(p *onnxpb.NodeProto) *infer.Node {
	n, _ := g.facts.Understand(p) // split has reported errors
	return n
}

func bytesOf(v Value) int {
	switch v.DType {
	case Double, Int64:
		return 8 * v.Size()
	case Float16:
		return 2 * v.Size()
	case Bool:
		return v.Size()
	}
	return 4 * v.Size()
}

// replay holds the values of a block that the backward pass computes again.
type replay struct {
	values     map[string]Value // by the name of the first one
	start, end int              // the nodes of the second computation in Graph.raw
}

// of returns the record of n over the values that are computed again.
func (r replay) of(n *infer.Node) *infer.Node {
	if len(r.values) == 0 {
		return n
	}
	again := *n
	again.Inputs, again.Outputs = r.swap(n.Inputs), r.swap(n.Outputs)
	return &again
}

func (r replay) swap(values []Value) []Value {
	out := make([]Value, len(values))
	for i, v := range values {
		out[i] = v
		if w, ok := r.values[v.Name]; ok {
			out[i] = w
		}
	}
	return out
}

// replay appends the nodes of a block once more. They read copies of the values that enter the block, which wait for the
// gradient: ONNX Runtime would otherwise merge equal nodes or compute them early.
func (g *Graph) replay(block []*onnxpb.NodeProto, active map[string]bool, grads map[string]Value) replay {
	r := replay{values: map[string]Value{}, start: len(g.raw)}
	own := map[string]bool{}
	for _, p := range block {
		for _, out := range p.Output {
			own[out] = true
		}
	}
	wait := g.latest(own, grads)
	if wait.Name == "" || wait.Size() == 0 {
		return replay{}
	}
	first := wait
	if wait.Size() > 1 {
		first = g.Reshape(wait, wait.Size())
		first = g.Slice(first, 0, 0, 1)
	}
	truth := g.compare("Equal", first, first) // not read for its value: both branches of the Where are equal
	truth = g.reshaped(truth, []int{})
	for _, p := range block {
		n := g.understood(p)
		for _, in := range n.Inputs {
			if _, ok := r.values[in.Name]; active[in.Name] && !own[in.Name] && !ok {
				r.values[in.Name] = g.where(truth, in, in)
			}
		}
		outputs := make([]Value, len(n.Outputs))
		for i, out := range n.Outputs {
			if out.Name != "" {
				outputs[i] = g.declare(g.fresh("again"), out.DType, out.Dims)
			}
		}
		c := &infer.Node{Op: n.Op, Name: n.Name, Inputs: r.swap(n.Inputs), Outputs: outputs, Attrs: n.Attrs}
		for i, out := range n.Outputs {
			if out.Name != "" {
				r.values[out.Name] = outputs[i]
			}
		}
		g.facts.Record(c)
		g.push(&onnxpb.NodeProto{OpType: p.OpType, Domain: p.Domain, Input: names(c.Inputs), Output: names(outputs), Attribute: p.Attribute})
	}
	r.end = len(g.raw)
	return r
}

// latest returns the gradient of one of the values that is known last, or the zero Value.
func (g *Graph) latest(values map[string]bool, grads map[string]Value) Value {
	known := map[string]Value{}
	var seed Value
	for name := range values {
		if d, ok := grads[name]; ok {
			known[d.Name], seed = d, d
		}
	}
	for _, n := range slices.Backward(g.raw) {
		for _, out := range n.Output {
			if d, ok := known[out]; ok {
				return d
			}
		}
	}
	return seed
}

// prune removes the nodes of a second computation that no rule reads.
func (g *Graph) prune(r replay) {
	if r.end == 0 {
		return
	}
	read := map[string]bool{}
	for _, n := range g.raw[r.end:] {
		for _, in := range n.Input {
			read[in] = true
		}
	}
	kept := slices.Clone(g.raw[r.end:])
	for _, n := range slices.Backward(g.raw[r.start:r.end]) {
		if slices.ContainsFunc(n.Output, func(out string) bool { return read[out] }) {
			kept = append([]*onnxpb.NodeProto{n}, kept...)
			for _, in := range n.Input {
				read[in] = true
			}
		}
	}
	g.raw = append(g.raw[:r.start], kept...)
}
