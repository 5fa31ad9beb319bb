package infer

import (
	"math"
	"slices"

	"ddiff/restore/onnx/onnxpb"
)

func foldCast(n *Node, in []Literal) (Literal, bool) {
	switch t := n.Outputs[0].DType; t {
	case Float, Double:
		return rounded(t, slices.Clone(in[0].Floats())), true
	case Bool:
		out := make([]int, in[0].count())
		for i, x := range in[0].Floats() {
			out[i] = truth(x != 0)
		}
		return Literal{Integers: out}, true
	case Int64, Int32:
		return Literal{Integers: in[0].round()}, true
	}
	return Literal{}, false
}

func foldConstantOfShape(n *Node, _ []Literal) (Literal, bool) {
	value := Literal{dtype: Float, dims: []int{1}, Numbers: []float64{0}}
	if t, ok := n.Attrs["value"].(*onnxpb.TensorProto); ok {
		if value, ok = DecodeTensor(t); !ok || value.count() != 1 {
			return Literal{}, false
		}
	}
	return value.pick(make([]int, n.Outputs[0].Size())), true
}

func foldRange(_ *Node, in []Literal) (Literal, bool) {
	start, limit, step := in[0].Floats()[0], in[1].Floats()[0], in[2].Floats()[0]
	count := int(math.Ceil((limit - start) / step))
	if step == 0 || count > largestLiteral {
		return Literal{}, false
	}
	count = max(0, count)
	l := Literal{dtype: in[0].dtype, dims: []int{count}}
	if in[0].dtype.isFloat() {
		l.Numbers = make([]float64, count)
		for i := range count {
			l.Numbers[i] = start + float64(i)*step
		}
		l.Numbers = rounded(l.dtype, l.Numbers).Numbers
		return l, true
	}
	l.Integers = make([]int, count)
	for i := range count {
		l.Integers[i] = int(start) + i*int(step)
	}
	return l, true
}

// positions returns, for each element of a value of the given dimensions, the result of f for its index.
func positions(dims []int, f func(index []int) int) []int {
	out := make([]int, Size(dims))
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

func foldGather(n *Node, in []Literal) (Literal, bool) {
	x, index := in[0], in[1]
	ax := Axis(n.Integer("axis", 0), len(x.dims))
	return x.pick(positions(n.Outputs[0].Dims, func(at []int) int {
		k := index.Integers[offset(index.dims, at[ax:ax+len(index.dims)])]
		return offset(x.dims, slices.Concat(at[:ax], []int{Axis(k, x.dims[ax])}, at[ax+len(index.dims):]))
	})), true
}

func foldConcat(_ *Node, in []Literal) (Literal, bool) {
	if len(in[0].dims) != 1 {
		return Literal{}, false
	}
	var out Literal
	if in[0].dtype.isFloat() {
		out.Numbers = []float64{}
	}
	for _, l := range in {
		out.Integers, out.Numbers = append(out.Integers, l.Integers...), append(out.Numbers, l.Numbers...)
	}
	return out, true
}

func foldSlice(n *Node, in []Literal) (Literal, bool) {
	x := in[0]
	starts, ends := in[1].Integers, in[2].Integers
	cuts := make([]Cut, len(x.dims))
	for i, d := range x.dims {
		cuts[i] = Cut{Step: 1, Count: d}
	}
	for i := range starts {
		a, step := i, 1
		if n.Has(3) {
			a = Axis(in[3].Integers[i], len(x.dims))
		}
		if n.Has(4) {
			step = in[4].Integers[i]
		}
		cuts[a] = makeCut(a, starts[i], ends[i], step, x.dims[a])
	}
	return x.pick(positions(n.Outputs[0].Dims, func(at []int) int {
		from := make([]int, len(at))
		for i, k := range at {
			from[i] = cuts[i].Start + k*cuts[i].Step
		}
		return offset(x.dims, from)
	})), true
}

func foldExpand(n *Node, in []Literal) (Literal, bool) { return in[0].stretch(n.Outputs[0].Dims), true }

func foldWhere(n *Node, in []Literal) (Literal, bool) {
	dims := n.Outputs[0].Dims
	c, a, b := in[0].stretch(dims), in[1].stretch(dims), in[2].stretch(dims)
	choose(c.Integers, a.Integers, b.Integers)
	choose(c.Integers, a.Numbers, b.Numbers)
	return a, true
}

// choose replaces the elements of a by those of b where the condition does not hold. a may be empty.
func choose[T any](condition []int, a, b []T) {
	for i := range a {
		if condition[i] == 0 {
			a[i] = b[i]
		}
	}
}

// foldReduce covers reductions of all elements.
func foldReduce(n *Node, in []Literal) (Literal, bool) {
	if n.Outputs[0].Size() != 1 || in[0].count() == 0 || n.Integer("noop_with_empty_axes", 0) != 0 {
		return Literal{}, false
	}
	f := binaries[map[string]string{"ReduceProd": "Mul", "ReduceSum": "Add", "ReduceMax": "Max", "ReduceMin": "Min"}[n.Op]]
	if in[0].dtype.isFloat() {
		return rounded(in[0].dtype, reduced(in[0].Numbers, f.numbers)), true
	}
	return Literal{Integers: reduced(in[0].Integers, f.integers)}, true
}

// reduced returns the result for all elements.
func reduced[T any](x []T, f func(a, b T) T) []T {
	acc := x[0]
	for _, v := range x[1:] {
		acc = f(acc, v)
	}
	return []T{acc}
}

func foldTranspose(n *Node, in []Literal) (Literal, bool) {
	perm := Permutation(n)
	return in[0].pick(positions(n.Outputs[0].Dims, func(at []int) int {
		from := make([]int, len(at))
		for i, p := range perm {
			from[p] = at[i]
		}
		return offset(in[0].dims, from)
	})), true
}

func foldNot(_ *Node, in []Literal) (Literal, bool) {
	out := make([]int, len(in[0].Integers))
	for i, x := range in[0].Integers {
		out[i] = 1 - x
	}
	return Literal{Integers: out}, true
}
