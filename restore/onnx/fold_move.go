package onnx

import (
	"math"
	"slices"

	"ddiff/restore/onnx/onnxpb"
)

func foldCast(n *node, in []literal) (literal, bool) {
	switch t := n.outputs[0].DType; t {
	case Float, Double:
		return rounded(t, slices.Clone(in[0].floats())), true
	case Bool:
		out := make([]int, in[0].count())
		for i, x := range in[0].floats() {
			out[i] = truth(x != 0)
		}
		return literal{integers: out}, true
	case Int64, Int32:
		return literal{integers: in[0].round()}, true
	}
	return literal{}, false
}

func foldConstantOfShape(n *node, _ []literal) (literal, bool) {
	value := literal{dtype: Float, dims: []int{1}, numbers: []float64{0}}
	if t, ok := n.attrs["value"].(*onnxpb.TensorProto); ok {
		if value, ok = decode(t); !ok || value.count() != 1 {
			return literal{}, false
		}
	}
	return value.pick(make([]int, n.outputs[0].Size())), true
}

func foldRange(_ *node, in []literal) (literal, bool) {
	start, limit, step := in[0].floats()[0], in[1].floats()[0], in[2].floats()[0]
	count := int(math.Ceil((limit - start) / step))
	if step == 0 || count > largestLiteral {
		return literal{}, false
	}
	count = max(0, count)
	l := literal{dtype: in[0].dtype, dims: []int{count}}
	if in[0].dtype.isFloat() {
		l.numbers = make([]float64, count)
		for i := range count {
			l.numbers[i] = start + float64(i)*step
		}
		return rounded(l.dtype, l.numbers).shaped(l.dims), true
	}
	l.integers = make([]int, count)
	for i := range count {
		l.integers[i] = int(start) + i*int(step)
	}
	return l, true
}

func (l literal) shaped(dims []int) literal {
	l.dims = dims
	return l
}

// positions returns, for each element of a value of the given dimensions, the result of f for its index.
func positions(dims []int, f func(index []int) int) []int {
	out := make([]int, size(dims))
	index := make([]int, len(dims))
	for i := range out {
		out[i] = f(index)
		for d := len(dims) - 1; d >= 0; d-- {
			if index[d]++; index[d] < dims[d] {
				break
			}
			index[d] = 0
		}
	}
	return out
}

// offset returns the position of an index in row-major order.
func offset(dims, index []int) int {
	k := 0
	for i, d := range dims {
		k = k*d + index[i]
	}
	return k
}

func foldGather(n *node, in []literal) (literal, bool) {
	x, index := in[0], in[1]
	ax := axis(n.integer("axis", 0), len(x.dims))
	return x.pick(positions(n.outputs[0].Dims, func(at []int) int {
		k := index.integers[offset(index.dims, at[ax:ax+len(index.dims)])]
		return offset(x.dims, slices.Concat(at[:ax], []int{axis(k, x.dims[ax])}, at[ax+len(index.dims):]))
	})), true
}

func foldConcat(_ *node, in []literal) (literal, bool) {
	if len(in[0].dims) != 1 {
		return literal{}, false
	}
	var out literal
	if in[0].dtype.isFloat() {
		out.numbers = []float64{}
	}
	for _, l := range in {
		out.integers, out.numbers = append(out.integers, l.integers...), append(out.numbers, l.numbers...)
	}
	return out, true
}

func foldSlice(n *node, in []literal) (literal, bool) {
	x := in[0]
	starts, ends := in[1].integers, in[2].integers
	cuts := make([]cut, len(x.dims))
	for i, d := range x.dims {
		cuts[i] = cut{step: 1, count: d}
	}
	for i := range starts {
		a, step := i, 1
		if n.has(3) {
			a = axis(in[3].integers[i], len(x.dims))
		}
		if n.has(4) {
			step = in[4].integers[i]
		}
		cuts[a] = makeCut(a, starts[i], ends[i], step, x.dims[a])
	}
	return x.pick(positions(n.outputs[0].Dims, func(at []int) int {
		from := make([]int, len(at))
		for i, k := range at {
			from[i] = cuts[i].start + k*cuts[i].step
		}
		return offset(x.dims, from)
	})), true
}

func foldExpand(n *node, in []literal) (literal, bool) { return in[0].stretch(n.outputs[0].Dims), true }

func foldWhere(n *node, in []literal) (literal, bool) {
	dims := n.outputs[0].Dims
	c, a, b := in[0].stretch(dims), in[1].stretch(dims), in[2].stretch(dims)
	if in[1].dtype.isFloat() {
		for i, yes := range c.integers {
			if yes == 0 {
				a.numbers[i] = b.numbers[i]
			}
		}
		return a, true
	}
	for i, yes := range c.integers {
		if yes == 0 {
			a.integers[i] = b.integers[i]
		}
	}
	return a, true
}

// foldReduce covers reductions of all elements.
func foldReduce(n *node, in []literal) (literal, bool) {
	if n.outputs[0].Size() != 1 || in[0].count() == 0 || n.integer("noop_with_empty_axes", 0) != 0 {
		return literal{}, false
	}
	f := binaries[map[string]string{"ReduceProd": "Mul", "ReduceSum": "Add", "ReduceMax": "Max", "ReduceMin": "Min"}[n.op]]
	if in[0].dtype.isFloat() {
		acc := in[0].numbers[0]
		for _, x := range in[0].numbers[1:] {
			acc = f.numbers(acc, x)
		}
		return rounded(in[0].dtype, []float64{acc}), true
	}
	acc := in[0].integers[0]
	for _, x := range in[0].integers[1:] {
		acc = f.integers(acc, x)
	}
	return literal{integers: []int{acc}}, true
}

func foldTranspose(n *node, in []literal) (literal, bool) {
	perm := permutation(n)
	return in[0].pick(positions(n.outputs[0].Dims, func(at []int) int {
		from := make([]int, len(at))
		for i, p := range perm {
			from[p] = at[i]
		}
		return offset(in[0].dims, from)
	})), true
}

func foldNot(_ *node, in []literal) (literal, bool) {
	out := make([]int, len(in[0].integers))
	for i, x := range in[0].integers {
		out[i] = 1 - x
	}
	return literal{integers: out}, true
}
