package onnx

import (
	"math"
	"slices"
)

// literalOf returns the elements of a small value that does not depend on data: a constant, a shape, or what a model
// computes from them.
func (f *facts) literalOf(name string) (literal, bool) {
	at := f
	for ; at != nil; at = at.outer {
		if t := at.tensors[name]; t != nil {
			break
		}
		if at.producers[name] != nil {
			break
		}
	}
	if at == nil {
		return literal{}, false
	}
	if l, ok := at.literals[name]; ok {
		if l == nil {
			return literal{}, false
		}
		return *l, true
	}
	at.literals[name] = nil
	l, ok := at.evaluate(name)
	if ok {
		at.literals[name] = &l
	}
	return l, ok
}

// integersOf returns the elements of an integer value that does not depend on data, such as a shape, in row-major order.
func (f *facts) integersOf(v Value) ([]int, bool) {
	l, ok := f.literalOf(v.Name)
	if !ok || l.numbers != nil {
		return nil, false
	}
	return l.integers, true
}

// numbersOf returns the elements of a float value that does not depend on data, such as the scales of a Resize.
func (f *facts) numbersOf(v Value) ([]float64, bool) {
	l, ok := f.literalOf(v.Name)
	if !ok || l.numbers == nil {
		return nil, false
	}
	return l.numbers, true
}

// evaluate computes a literal of g itself.
func (f *facts) evaluate(name string) (l literal, ok bool) {
	if t := f.tensors[name]; t != nil {
		return decode(t)
	}
	p := f.producers[name]
	compute := folds[p.OpType]
	if compute == nil || !standard(p) {
		return literal{}, false
	}
	n, err := f.understand(p)
	if err != nil || n.outputs[0].Size() > largestLiteral {
		return literal{}, false
	}
	switch n.op {
	case "Shape":
		dims := shapeOf(n)
		return vector(dims), !slices.ContainsFunc(dims, func(d int) bool { return d < 0 })
	case "Size":
		return literal{dtype: Int64, integers: []int{n.inputs[0].Size()}}, true
	case "Constant":
		return constantOf(n)
	}
	in, ok := f.literalsOf(n)
	if !ok {
		return literal{}, false
	}
	defer func() {
		if recover() != nil { // a division by zero, or an index outside the input
			l, ok = literal{}, false
		}
	}()
	l, ok = compute(n, in)
	l.dtype, l.dims = n.outputs[0].DType, n.outputs[0].Dims
	return l, ok && len(l.integers)+len(l.numbers) == size(l.dims)
}

// literalsOf returns the elements of all inputs of n. Omitted inputs are empty.
func (f *facts) literalsOf(n *node) ([]literal, bool) {
	out := make([]literal, len(n.inputs))
	for i, in := range n.inputs {
		if in.Name == "" {
			continue
		}
		var ok bool
		if out[i], ok = f.literalOf(in.Name); !ok {
			return nil, false
		}
	}
	return out, true
}

// vector returns a literal of rank 1.
func vector(x []int) literal { return literal{dtype: Int64, dims: []int{len(x)}, integers: x} }

// isFloat reports whether the elements are numbers.
func (t DType) isFloat() bool { return t == Float || t == Double || t == Float16 }

// round returns the elements as integers, cut towards zero.
func (l literal) round() []int {
	if !l.dtype.isFloat() {
		return l.integers
	}
	out := make([]int, len(l.numbers))
	for i, x := range l.numbers {
		out[i] = int(x)
	}
	return out
}

// floats returns the elements as numbers.
func (l literal) floats() []float64 {
	if l.dtype.isFloat() {
		return l.numbers
	}
	out := make([]float64, len(l.integers))
	for i, x := range l.integers {
		out[i] = float64(x)
	}
	return out
}

// pick returns the elements at the given positions.
func (l literal) pick(at []int) literal {
	var out literal
	if l.dtype.isFloat() {
		out.numbers = make([]float64, len(at))
		for i, k := range at {
			out.numbers[i] = l.numbers[k]
		}
		return out
	}
	out.integers = make([]int, len(at))
	for i, k := range at {
		out.integers[i] = l.integers[k]
	}
	return out
}

// A fold computes the elements of a node's output from those of its inputs.
type fold func(n *node, in []literal) (literal, bool)

var folds = func() map[string]fold {
	typed := func(*node, []literal) (literal, bool) { return literal{}, false } // from types only, see evaluate
	copied := func(_ *node, in []literal) (literal, bool) { return in[0], true }
	out := map[string]fold{
		"Shape": typed, "Size": typed, "Constant": typed,
		"Identity": copied, "Reshape": copied, "Squeeze": copied, "Unsqueeze": copied, "Flatten": copied,
		"Cast": foldCast, "ConstantOfShape": foldConstantOfShape, "Range": foldRange, "Gather": foldGather, "Concat": foldConcat,
		"Slice": foldSlice, "Expand": foldExpand, "Where": foldWhere, "ReduceProd": foldReduce, "ReduceSum": foldReduce, "ReduceMax": foldReduce,
		"ReduceMin": foldReduce, "Transpose": foldTranspose, "Not": foldNot,
	}
	for op, f := range map[string]func(float64) float64{
		"Floor": math.Floor, "Ceil": math.Ceil, "Round": math.RoundToEven, "Sqrt": math.Sqrt, "Exp": math.Exp, "Log": math.Log,
		"Neg": func(x float64) float64 { return -x }, "Abs": math.Abs, "Reciprocal": func(x float64) float64 { return 1 / x },
	} {
		out[op] = foldUnary(f)
	}
	for op, f := range binaries {
		out[op] = foldBinary(f)
	}
	return out
}()

// operator computes with integers or numbers.
type operator struct {
	integers func(a, b int) int
	numbers  func(a, b float64) float64
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// modulo has the sign of the divisor.
func modulo(a, b int) int { return ((a % b) + b) % b }

var binaries = map[string]operator{
	"Add": {func(a, b int) int { return a + b }, func(a, b float64) float64 { return a + b }},
	"Sub": {func(a, b int) int { return a - b }, func(a, b float64) float64 { return a - b }},
	"Mul": {func(a, b int) int { return a * b }, func(a, b float64) float64 { return a * b }},
	"Div": {func(a, b int) int { return a / b }, func(a, b float64) float64 { return a / b }},
	"Mod": {modulo, nil},
	"Min": {func(a, b int) int { return min(a, b) }, math.Min},
	"Max": {func(a, b int) int { return max(a, b) }, math.Max},
	"Pow": {func(a, b int) int { return int(math.Pow(float64(a), float64(b))) }, math.Pow},

	"Equal":          {func(a, b int) int { return truth(a == b) }, func(a, b float64) float64 { return float64(truth(a == b)) }},
	"Less":           {func(a, b int) int { return truth(a < b) }, func(a, b float64) float64 { return float64(truth(a < b)) }},
	"Greater":        {func(a, b int) int { return truth(a > b) }, func(a, b float64) float64 { return float64(truth(a > b)) }},
	"LessOrEqual":    {func(a, b int) int { return truth(a <= b) }, func(a, b float64) float64 { return float64(truth(a <= b)) }},
	"GreaterOrEqual": {func(a, b int) int { return truth(a >= b) }, func(a, b float64) float64 { return float64(truth(a >= b)) }},
	"And":            {func(a, b int) int { return a & b }, nil},
	"Or":             {func(a, b int) int { return a | b }, nil},
	"Xor":            {func(a, b int) int { return a ^ b }, nil},
}

// rounded returns numbers in the precision of a type.
func rounded(t DType, x []float64) literal {
	if t == Float {
		for i := range x {
			x[i] = float64(float32(x[i]))
		}
	}
	return literal{dtype: t, numbers: x}
}

func foldUnary(f func(float64) float64) fold {
	return func(n *node, in []literal) (literal, bool) {
		x := make([]float64, in[0].count())
		for i, v := range in[0].floats() {
			x[i] = f(v)
		}
		l := rounded(n.outputs[0].DType, x)
		if !n.outputs[0].DType.isFloat() {
			l.numbers, l.integers = nil, make([]int, len(x))
			for i := range x {
				l.integers[i] = int(x[i])
			}
		}
		return l, n.outputs[0].DType != Float16
	}
}

func (l literal) count() int { return len(l.integers) + len(l.numbers) }

func foldBinary(f operator) fold {
	return func(n *node, in []literal) (literal, bool) {
		acc := in[0].stretch(n.outputs[0].Dims)
		acc.dtype = in[0].dtype
		for _, other := range in[1:] {
			b := other.stretch(n.outputs[0].Dims)
			if acc.dtype.isFloat() != other.dtype.isFloat() {
				return literal{}, false
			}
			if !acc.dtype.isFloat() {
				for i := range acc.integers {
					acc.integers[i] = f.integers(acc.integers[i], b.integers[i])
				}
				continue
			}
			if f.numbers == nil {
				return literal{}, false
			}
			for i := range acc.numbers {
				acc.numbers[i] = f.numbers(acc.numbers[i], b.numbers[i])
			}
		}
		if n.outputs[0].DType == Bool && acc.numbers != nil {
			return literal{integers: acc.round()}, true
		}
		if acc.dtype.isFloat() {
			return rounded(n.outputs[0].DType, acc.numbers), true
		}
		return acc, true
	}
}

// stretch repeats the elements to the given dimensions.
func (l literal) stretch(dims []int) literal {
	at := make([]int, size(dims))
	for i := range at {
		rest, step, k := i, 1, 0
		for d := len(dims) - 1; d >= 0; d-- {
			if j := d - len(dims) + len(l.dims); j >= 0 {
				if l.dims[j] != 1 {
					k += rest % dims[d] * step
				}
				step *= l.dims[j]
			}
			rest /= dims[d]
		}
		at[i] = k
	}
	return l.pick(at)
}
