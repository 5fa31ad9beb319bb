package onnx

import (
	"fmt"

	"ddiff/internal/restore/onnx/infer"
)

func (g *Graph) elementwise(op string, a, b Value) Value {
	if a.DType != b.DType {
		panic(fmt.Sprintf("onnx: %s of types %d and %d", op, a.DType, b.DType))
	}
	return g.op(op, nil, a, b)
}

// Add is a + b. Arithmetic operations broadcast.
func (g *Graph) Add(a, b Value) Value { return g.elementwise("Add", a, b) }

// Minus is a − b.
func (g *Graph) Minus(a, b Value) Value { return g.elementwise("Sub", a, b) }

// Mul is a·b, element by element.
func (g *Graph) Mul(a, b Value) Value { return g.elementwise("Mul", a, b) }

// Div is a/b.
func (g *Graph) Div(a, b Value) Value { return g.elementwise("Div", a, b) }

// Max is the larger of a and b.
func (g *Graph) Max(a, b Value) Value { return g.elementwise("Max", a, b) }

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
	return g.op("Clip", nil, a, g.Scalar(lo), g.Scalar(hi))
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
func (g *Graph) MatMul(a, b Value) Value { return g.elementwise("MatMul", a, b) }

// Transpose permutes the dimensions.
func (g *Graph) Transpose(a Value, perm ...int) Value {
	return g.op("Transpose", map[string]any{"perm": perm}, a)
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
	return g.applySlice(a, start, end, axis, 1)
}

// Reverse flips one dimension.
func (g *Graph) Reverse(a Value, axis int) Value {
	// From the last element down to "before the first", a value that every runtime clamps.
	return g.applySlice(a, -1, -(1 << 31), axis, -1)
}

// ReverseIf is Reverse if a number, float32 of shape [1], is not 0, and a otherwise. A slice with computed bounds would make devices wait for the host.
func (g *Graph) ReverseIf(number, a Value, axis int) Value {
	return g.where(g.Cast(number, Bool), g.Reverse(a, axis), a)
}

func (g *Graph) applySlice(a Value, start, end, axis, step int) Value {
	return g.op("Slice", nil, a, g.Ints(start), g.Ints(end), g.Ints(axis), g.Ints(step))
}

// Concat joins values along one dimension.
func (g *Graph) Concat(axis int, vs ...Value) Value {
	return g.op("Concat", map[string]any{"axis": axis}, vs...)
}

// Split cuts one dimension into parts of the given lengths.
func (g *Graph) Split(a Value, axis int, lengths ...int) []Value {
	return g.parts("Split", len(lengths), map[string]any{"axis": axis}, a, g.Ints(lengths...))
}

// ReduceSum sums over the given dimensions, which remain with length 1.
func (g *Graph) ReduceSum(a Value, axes ...int) Value {
	return g.op("ReduceSum", map[string]any{"keepdims": 1}, a, g.Ints(axes...))
}

// Norm is the Euclidean norm over all but the first dimension, of shape [N]. It is made of a sum: on CUDA, ReduceL2 of sixteen images takes longer than a
// network.
func (g *Graph) Norm(a Value) Value {
	flat := g.Reshape(a, a.Dims[0], a.Size()/a.Dims[0])
	return g.Reshape(g.Sqrt(g.ReduceSum(g.Mul(flat, flat), 1)), a.Dims[0])
}

// Gather takes element index (a scalar int64 value) of the first dimension.
func (g *Graph) Gather(a, index Value) Value {
	return g.op("Gather", map[string]any{"axis": 0}, a, index)
}

// Expand repeats a along dimensions of length 1.
func (g *Graph) Expand(a Value, dims ...int) Value { return g.op("Expand", nil, a, g.Ints(dims...)) }

// Cast changes the element type.
func (g *Graph) Cast(a Value, t DType) Value { return g.op("Cast", map[string]any{"to": int(t)}, a) }
