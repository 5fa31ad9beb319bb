package infer

import (
	"slices"
)

// reducedShapes are the inferences of products of matrices and of reductions.
var reducedShapes = func() map[string]inference {
	out := map[string]inference{
		"MatMul": matMulShape, "Gemm": gemmShape, "Einsum": einsumShape, "ArgMax": argShape, "ArgMin": argShape, "TopK": topShape,
	}
	for _, op := range []string{
		"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare",
		"ReduceLogSum", "ReduceLogSumExp",
	} {
		out[op] = reduceShape
	}
	return out
}()

func matMulShape(_ *Facts, n *Node) error {
	a, b := n.Inputs[0].Dims, n.Inputs[1].Dims
	if len(a) == 0 || len(b) == 0 {
		return misfit(n)
	}
	left, right := a, b
	if len(a) == 1 {
		left = []int{1, a[0]}
	}
	if len(b) == 1 {
		right = []int{b[0], 1}
	}
	lead, ok := Broadcast(left[:len(left)-2], right[:len(right)-2])
	if !ok || left[len(left)-1] != right[len(right)-2] {
		return misfit(n)
	}
	dims := slices.Clone(lead)
	if len(a) > 1 {
		dims = append(dims, left[len(left)-2])
	}
	if len(b) > 1 {
		dims = append(dims, right[len(right)-1])
	}
	return n.returns(n.Inputs[0].DType, dims)
}

func gemmShape(_ *Facts, n *Node) error {
	a, b := slices.Clone(n.Inputs[0].Dims), slices.Clone(n.Inputs[1].Dims)
	if n.Integer("transA", 0) != 0 {
		slices.Reverse(a)
	}
	if n.Integer("transB", 0) != 0 {
		slices.Reverse(b)
	}
	if len(a) != 2 || len(b) != 2 || a[1] != b[0] {
		return misfit(n)
	}
	return n.returns(n.Inputs[0].DType, []int{a[0], b[1]})
}

func einsumShape(_ *Facts, n *Node) error {
	e, err := ParseEinsum(n)
	if err != nil {
		return err
	}
	dims := []int{}
	for _, label := range e.Output {
		dims = append(dims, e.Lengths[label])
	}
	return n.returns(n.Inputs[0].DType, dims)
}

// ReducedAxes returns the axes of a reduction in order. Without a list it covers all, or none with noop_with_empty_axes.
func (f *Facts) ReducedAxes(n *Node) ([]int, bool) {
	rank := n.Inputs[0].Rank()
	axes, ok := f.axesOf(n, rank)
	if ok && len(axes) == 0 && n.Integer("noop_with_empty_axes", 0) == 0 {
		for i := range rank {
			axes = append(axes, i)
		}
	}
	return axes, ok
}

// Without returns dims with length 1 along the axes, or without the axes.
func Without(dims, axes []int, keep bool) []int {
	out := []int{}
	for i, d := range dims {
		switch {
		case !slices.Contains(axes, i):
			out = append(out, d)
		case keep:
			out = append(out, 1)
		}
	}
	return out
}

func reduceShape(f *Facts, n *Node) error {
	axes, ok := f.ReducedAxes(n)
	if !ok {
		return unknown("a list of axes")
	}
	return n.returns(n.Inputs[0].DType, Without(n.Inputs[0].Dims, axes, n.Integer("keepdims", 1) != 0))
}

func argShape(_ *Facts, n *Node) error {
	in := n.Inputs[0].Dims
	return n.returns(Int64, Without(in, []int{Axis(n.Integer("axis", 0), len(in))}, n.Integer("keepdims", 1) != 0))
}

func topShape(f *Facts, n *Node) error {
	k, ok := f.IntegersOf(n.Inputs[1])
	if !ok {
		return unknown("the number of elements")
	}
	dims := slices.Clone(n.Inputs[0].Dims)
	dims[Axis(n.Integer("axis", -1), len(dims))] = k[0]
	n.set(0, n.Inputs[0].DType, dims)
	n.set(1, Int64, dims)
	return nil
}
