package infer

import (
	"math"
	"slices"

	"ddiff/internal/restore/onnx/onnxpb"
)

func foldConstantOfShape(n *Node, _ []Literal) ([]float64, bool) {
	value := Literal{dtype: Float, dims: []int{1}, Elements: []float64{0}}
	if t, ok := n.Attrs["value"].(*onnxpb.TensorProto); ok {
		if value, ok = DecodeTensor(t); !ok || len(value.Elements) != 1 {
			return nil, false
		}
	}
	return value.pick(make([]int, n.Outputs[0].Size())), true
}

// rangeCount returns the number of elements of a Range.
func rangeCount(in []Literal) (int, bool) {
	start, limit, step := in[0].Elements[0], in[1].Elements[0], in[2].Elements[0]
	count := math.Ceil((limit - start) / step)
	if step == 0 || !(count <= largestLiteral) {
		return 0, false
	}
	return max(0, int(count)), true
}

func foldRange(_ *Node, in []Literal) ([]float64, bool) {
	count, ok := rangeCount(in)
	out := make([]float64, count)
	for i := range out {
		out[i] = in[0].Elements[0] + float64(i)*in[2].Elements[0]
	}
	return out, ok
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

func foldGather(n *Node, in []Literal) ([]float64, bool) {
	x, index := in[0], in[1]
	indices := index.Integers()
	ax := Axis(n.Integer("axis", 0), len(x.dims))
	return x.pick(positions(n.Outputs[0].Dims, func(at []int) int {
		k := indices[offset(index.dims, at[ax:ax+len(index.dims)])]
		return offset(x.dims, slices.Concat(at[:ax], []int{Axis(k, x.dims[ax])}, at[ax+len(index.dims):]))
	})), true
}

func foldConcat(_ *Node, in []Literal) (out []float64, ok bool) {
	for _, l := range in {
		out = append(out, l.Elements...)
	}
	return out, len(in[0].dims) == 1
}

// foldSlice computes a Slice of x, whose other inputs are known.
func (f *Facts) foldSlice(n *Node, x Literal) ([]float64, bool) {
	parts, err := f.Cuts(n)
	cuts := make([]Cut, len(x.dims))
	for i, d := range x.dims {
		cuts[i] = Cut{Step: 1, Count: d}
	}
	for _, c := range parts {
		cuts[c.Axis] = c
	}
	return x.pick(positions(n.Outputs[0].Dims, func(at []int) int {
		from := make([]int, len(at))
		for i, k := range at {
			from[i] = cuts[i].Start + k*cuts[i].Step
		}
		return offset(x.dims, from)
	})), err == nil
}

func foldExpand(n *Node, in []Literal) ([]float64, bool) {
	return in[0].stretch(n.Outputs[0].Dims), true
}

func foldWhere(n *Node, in []Literal) ([]float64, bool) {
	dims := n.Outputs[0].Dims
	c, out, otherwise := in[0].stretch(dims), in[1].stretch(dims), in[2].stretch(dims)
	for i := range out {
		if c[i] == 0 {
			out[i] = otherwise[i]
		}
	}
	return out, true
}

// foldReduce covers reductions of all elements.
func foldReduce(n *Node, in []Literal) ([]float64, bool) {
	if n.Outputs[0].Size() != 1 || len(in[0].Elements) == 0 || n.Integer("noop_with_empty_axes", 0) != 0 {
		return nil, false
	}
	f := binaries[map[string]string{"ReduceProd": "Mul", "ReduceSum": "Add", "ReduceMax": "Max", "ReduceMin": "Min"}[n.Op]]
	out := in[0].Elements[0]
	for _, v := range in[0].Elements[1:] {
		out = f(out, v)
	}
	return []float64{out}, true
}

func foldTranspose(n *Node, in []Literal) ([]float64, bool) {
	perm := Permutation(n)
	return in[0].pick(positions(n.Outputs[0].Dims, func(at []int) int {
		from := make([]int, len(at))
		for i, p := range perm {
			from[p] = at[i]
		}
		return offset(in[0].dims, from)
	})), true
}
