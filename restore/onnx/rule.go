package onnx

import (
	"encoding/binary"
	"math"
	"slices"

	"ddiff/internal/restore/onnx/infer"
	"ddiff/internal/restore/onnx/onnxpb"
)

// A rule builds the gradient of input k of n from the gradients dy of its outputs. An output without effect on the result
// has the zero Value in dy; at least one has a gradient. The result has the shape and the type of input k; the zero Value
// states that the derivative is zero everywhere. A rule refuses forms of n that it does not cover with n.Refuse.
//
// Shapes are known: n.Inputs[i].Dims. Facts.IntegersOf and Facts.NumbersOf return the elements of inputs that are
// constants or depend on shapes only.
type rule func(g *Graph, n *infer.Node, k int, dy []Value) (Value, error)

// families lists the rules by family. An operation is in one family only.
func families() []map[string]rule {
	return []map[string]rule{
		arithmeticRules, functionRules, linearRules, networkRules, reductionRules, shapeRules, gatherRules,
	}
}

// ruleOf returns the rule of an operation, nil for none.
func ruleOf(op string) rule {
	for _, family := range families() {
		if r := family[op]; r != nil {
			return r
		}
	}
	return nil
}

// piecewiseConstant reports whether a node's derivative is zero wherever it exists, or counts as zero.
func piecewiseConstant(n *onnxpb.NodeProto) bool {
	switch n.OpType {
	case "Identity":
		return isDetached(n)
	case "Shape", "Size", "ArgMax", "ArgMin", "NonZero", "Sign", "Floor", "Ceil", "Round", "IsNaN", "IsInf", "Equal", "Less",
		"Greater", "LessOrEqual", "GreaterOrEqual", "And", "Or", "Not", "Xor", "ConstantOfShape", "EyeLike":
		return infer.Standard(n)
	case "Cast":
		for _, a := range n.Attribute {
			if a.Name == "to" && !fractional(DType(a.I)) {
				return true
			}
		}
	}
	return false
}

// fractional reports whether numbers of a type of a file are not whole.
func fractional(t DType) bool {
	const bfloat16, float8 = 16, 20 // the four types of float8 begin behind bfloat16
	return t == Float || t == Float16 || t == Double || t >= bfloat16 && t <= float8
}

// number adds a constant of rank 0 and a float type.
func (g *Graph) number(t DType, x float64) Value {
	switch t {
	case Float:
		return g.Scalar(float32(x))
	case Double:
		return g.constant(Double, binary.LittleEndian.AppendUint64(nil, math.Float64bits(x)), nil)
	}
	return g.Cast(g.Scalar(float32(x)), t)
}

// zeros adds a value of zeros.
func (g *Graph) zeros(t DType, dims []int) Value { return g.Expand(g.number(t, 0), dims...) }

// scaled multiplies v by a number.
func (g *Graph) scaled(v Value, x float64) Value {
	if x == 1 {
		return v
	}
	return g.Mul(v, g.number(v.DType, x))
}

// unary adds an operation that changes neither shape nor type.
func (g *Graph) unary(op string, v Value) Value { return g.op(op, nil, v) }

// compare adds a comparison of two values.
func (g *Graph) compare(op string, a, b Value) Value { return g.elementwise(op, a, b) }

// where takes a where c is true and b elsewhere. All three broadcast.
func (g *Graph) where(c, a, b Value) Value { return g.op("Where", nil, c, a, b) }

// unbroadcast sums dy over the dimensions along which dims was repeated.
func (g *Graph) unbroadcast(dy Value, dims []int) Value {
	if slices.Equal(dy.Dims, dims) {
		return dy
	}
	lead := dy.Rank() - len(dims)
	var axes []int
	for i, d := range dy.Dims {
		if i < lead || dims[i-lead] != d {
			axes = append(axes, i)
		}
	}
	if len(axes) > 0 {
		dy = g.ReduceSum(dy, axes...)
	}
	return g.Reshape(dy, dims...)
}

// transposeLast exchanges the last two dimensions.
func (g *Graph) transposeLast(v Value) Value {
	perm := make([]int, v.Rank())
	for i := range perm {
		perm[i] = i
	}
	r := len(perm)
	perm[r-2], perm[r-1] = r-1, r-2
	return g.Transpose(v, perm...)
}
