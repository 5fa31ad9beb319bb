package onnx

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

func matMulShape(_ *facts, n *node) error {
	a, b := n.inputs[0].Dims, n.inputs[1].Dims
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
	lead, ok := broadcast(left[:len(left)-2], right[:len(right)-2])
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
	n.set(0, n.inputs[0].DType, dims)
	return nil
}

func gemmShape(_ *facts, n *node) error {
	a, b := slices.Clone(n.inputs[0].Dims), slices.Clone(n.inputs[1].Dims)
	if n.integer("transA", 0) != 0 {
		slices.Reverse(a)
	}
	if n.integer("transB", 0) != 0 {
		slices.Reverse(b)
	}
	if len(a) != 2 || len(b) != 2 || a[1] != b[0] {
		return misfit(n)
	}
	n.set(0, n.inputs[0].DType, []int{a[0], b[1]})
	return nil
}

func einsumShape(_ *facts, n *node) error {
	e, err := parseEinsum(n)
	if err != nil {
		return err
	}
	dims := []int{}
	for _, label := range e.output {
		dims = append(dims, e.lengths[label])
	}
	n.set(0, n.inputs[0].DType, dims)
	return nil
}

// reducedAxes returns the axes of a reduction in order. Without a list it covers all, or none with noop_with_empty_axes.
func (f *facts) reducedAxes(n *node) ([]int, bool) {
	rank := n.inputs[0].Rank()
	axes, ok := f.axesOf(n, 1, rank)
	if ok && len(axes) == 0 && n.integer("noop_with_empty_axes", 0) == 0 {
		for i := range rank {
			axes = append(axes, i)
		}
	}
	return axes, ok
}

// without returns dims with length 1 along the axes, or without the axes.
func without(dims, axes []int, keep bool) []int {
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

func reduceShape(f *facts, n *node) error {
	axes, ok := f.reducedAxes(n)
	if !ok {
		return unknown("a list of axes")
	}
	n.set(0, n.inputs[0].DType, without(n.inputs[0].Dims, axes, n.integer("keepdims", 1) != 0))
	return nil
}

func argShape(_ *facts, n *node) error {
	in := n.inputs[0].Dims
	n.set(0, Int64, without(in, []int{axis(n.integer("axis", 0), len(in))}, n.integer("keepdims", 1) != 0))
	return nil
}

func topShape(f *facts, n *node) error {
	k, ok := f.integersOf(n.inputs[1])
	if !ok {
		return unknown("the number of elements")
	}
	dims := slices.Clone(n.inputs[0].Dims)
	dims[axis(n.integer("axis", -1), len(dims))] = k[0]
	n.set(0, n.inputs[0].DType, dims)
	n.set(1, Int64, dims)
	return nil
}
