package onnx

import (
	"fmt"
	"maps"
	"slices"

	"ddiff/restore/onnx/infer"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func (g *Graph) elementwise(op string, t DType, a, b Value) Value {
	dims, ok := infer.Broadcast(a.Dims, b.Dims)
	if !ok || a.DType != b.DType {
		panic(fmt.Sprintf("onnx: %s of %v and %v", op, a.Dims, b.Dims))
	}
	return g.Apply(op, t, dims, nil, a, b)
}

// Add is a + b. Arithmetic operations broadcast.
func (g *Graph) Add(a, b Value) Value { return g.elementwise("Add", a.DType, a, b) }

// Minus is a − b.
func (g *Graph) Minus(a, b Value) Value { return g.elementwise("Sub", a.DType, a, b) }

// Mul is a·b, element by element.
func (g *Graph) Mul(a, b Value) Value { return g.elementwise("Mul", a.DType, a, b) }

// Div is a/b.
func (g *Graph) Div(a, b Value) Value { return g.elementwise("Div", a.DType, a, b) }

// Max is the larger of a and b.
func (g *Graph) Max(a, b Value) Value { return g.elementwise("Max", a.DType, a, b) }

// Exp is the exponential function.
func (g *Graph) Exp(a Value) Value { return g.unary("Exp", a) }

// Log is the natural logarithm.
func (g *Graph) Log(a Value) Value { return g.unary("Log", a) }

// Pow is a to the constant power p, for positive a. Exp and Log are several times faster on a CPU than the runtime's
// Pow.
func (g *Graph) Pow(a Value, p float32) Value { return g.Exp(g.Mul(g.Log(a), g.Scalar(p))) }

// Sqrt is the square root.
func (g *Graph) Sqrt(a Value) Value { return g.unary("Sqrt", a) }

// Neg is −a.
func (g *Graph) Neg(a Value) Value { return g.unary("Neg", a) }

// Clip limits a to [lo, hi]. Its derivative is 1 inside and at the limits, 0 outside.
func (g *Graph) Clip(a Value, lo, hi float32) Value {
	return g.Apply("Clip", a.DType, a.Dims, nil, a, g.Scalar(lo), g.Scalar(hi))
}

// inside is 1 where lo ≤ a ≤ hi, else 0. A limit may be the zero Value.
func (g *Graph) inside(a, lo, hi Value) Value {
	switch {
	case lo.Name == "" && hi.Name == "":
		return g.Expand(g.number(a.DType, 1), a.Dims...)
	case lo.Name == "":
		return g.Cast(g.compare("LessOrEqual", a, hi), a.DType)
	case hi.Name == "":
		return g.Cast(g.compare("GreaterOrEqual", a, lo), a.DType)
	}
	ge := g.compare("GreaterOrEqual", a, lo)
	le := g.compare("LessOrEqual", a, hi)
	return g.Cast(g.compare("And", ge, le), a.DType)
}

// MatMul multiplies the last two dimensions; the leading ones broadcast.
func (g *Graph) MatMul(a, b Value) Value {
	ra, rb := a.Rank(), b.Rank()
	if ra < 2 || rb < 2 || a.Dims[ra-1] != b.Dims[rb-2] {
		panic(fmt.Sprintf("onnx: MatMul of %v and %v", a.Dims, b.Dims))
	}
	lead, ok := infer.Broadcast(a.Dims[:ra-2], b.Dims[:rb-2])
	if !ok {
		panic(fmt.Sprintf("onnx: MatMul of %v and %v", a.Dims, b.Dims))
	}
	dims := append(slices.Clone(lead), a.Dims[ra-2], b.Dims[rb-1])
	return g.Apply("MatMul", a.DType, dims, nil, a, b)
}

// Transpose permutes the dimensions.
func (g *Graph) Transpose(a Value, perm ...int) Value {
	if len(perm) != a.Rank() {
		panic(fmt.Sprintf("onnx: Transpose of %v by %v", a.Dims, perm))
	}
	dims := make([]int, len(perm))
	for i, p := range perm {
		dims[i] = a.Dims[p]
	}
	return g.Apply("Transpose", a.DType, dims, map[string]any{"perm": perm}, a)
}

// Reshape changes the shape and preserves the order of the elements.
func (g *Graph) Reshape(a Value, dims ...int) Value {
	if infer.Size(dims) != a.Size() {
		panic(fmt.Sprintf("onnx: Reshape of %v to %v", a.Dims, dims))
	}
	return g.Apply("Reshape", a.DType, dims, nil, a, g.Ints(dims...))
}

// Slice takes [start, end) of one dimension.
func (g *Graph) Slice(a Value, axis, start, end int) Value {
	if start < 0 || end > a.Dims[axis] || start >= end {
		panic(fmt.Sprintf("onnx: Slice of %v, axis %d, %d..%d", a.Dims, axis, start, end))
	}
	dims := slices.Clone(a.Dims)
	dims[axis] = end - start
	return g.applySlice(a, dims, start, end, axis, 1)
}

// Reverse flips one dimension.
func (g *Graph) Reverse(a Value, axis int) Value {
	// From the last element down to "before the first", a value that every runtime clamps.
	return g.applySlice(a, a.Dims, -1, -(1 << 31), axis, -1)
}

// ReverseIf is Reverse if a number, float32 of shape [1], is not 0, and a otherwise. A slice with computed bounds would make devices wait for the host.
func (g *Graph) ReverseIf(number, a Value, axis int) Value {
	return g.where(g.Cast(number, Bool), g.Reverse(a, axis), a)
}

func (g *Graph) applySlice(a Value, dims []int, start, end, axis, step int) Value {
	return g.Apply("Slice", a.DType, dims, nil, a, g.Ints(start), g.Ints(end), g.Ints(axis), g.Ints(step))
}

// Concat joins values along one dimension.
func (g *Graph) Concat(axis int, vs ...Value) Value {
	dims := slices.Clone(vs[0].Dims)
	dims[axis] = 0
	for _, v := range vs {
		dims[axis] += v.Dims[axis]
	}
	return g.Apply("Concat", vs[0].DType, dims, map[string]any{"axis": axis}, vs...)
}

// Split cuts one dimension into parts of the given lengths.
func (g *Graph) Split(a Value, axis int, lengths ...int) []Value {
	parts := make([]Value, len(lengths))
	for i, n := range lengths {
		dims := slices.Clone(a.Dims)
		dims[axis] = n
		parts[i] = g.declare(g.fresh("Split"), a.DType, dims)
	}
	g.record("Split", map[string]any{"axis": axis}, []Value{a, g.Ints(lengths...)}, parts)
	return parts
}

// ReduceSum sums over the given dimensions, which remain with length 1.
func (g *Graph) ReduceSum(a Value, axes ...int) Value {
	dims := slices.Clone(a.Dims)
	for _, ax := range axes {
		dims[ax] = 1
	}
	return g.Apply("ReduceSum", a.DType, dims, map[string]any{"keepdims": 1}, a, g.Ints(axes...))
}

// Norm is the Euclidean norm over all but the first dimension, of shape [N].
func (g *Graph) Norm(a Value) Value {
	flat := g.Reshape(a, a.Dims[0], a.Size()/a.Dims[0])
	dims := []int{a.Dims[0]}
	if g.opset >= 18 {
		return g.Apply("ReduceL2", a.DType, dims, map[string]any{"keepdims": 0}, flat, g.Ints(1))
	}
	return g.Apply("ReduceL2", a.DType, dims, map[string]any{"keepdims": 0, "axes": []int{1}}, flat)
}

// Gather takes element index (a scalar int64 value) of the first dimension.
func (g *Graph) Gather(a, index Value) Value {
	dims := slices.Concat(index.Dims, a.Dims[1:])
	return g.Apply("Gather", a.DType, dims, map[string]any{"axis": 0}, a, index)
}

// Expand repeats a along dimensions of length 1.
func (g *Graph) Expand(a Value, dims ...int) Value {
	return g.Apply("Expand", a.DType, dims, nil, a, g.Ints(dims...))
}

// Cast changes the element type.
func (g *Graph) Cast(a Value, t DType) Value {
	return g.Apply("Cast", t, a.Dims, map[string]any{"to": int(t)}, a)
}
