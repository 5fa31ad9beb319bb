package infer

import (
	"math"
	"slices"
)

// LiteralOf returns the elements of a small value that does not depend on data: a constant, a shape, or what a model
// computes from them.
func (f *Facts) LiteralOf(name string) (Literal, bool) {
	at := f
	for ; at != nil; at = at.outer {
		if at.tensors[name] != nil || at.producers[name] != nil {
			break
		}
	}
	if at == nil {
		return Literal{}, false
	}
	if l, ok := at.literals[name]; ok {
		if l == nil {
			return Literal{}, false
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

// IntegersOf returns the elements of an integer value that does not depend on data, such as a shape, in row-major order.
func (f *Facts) IntegersOf(v Value) ([]int, bool) {
	l, ok := f.LiteralOf(v.Name)
	if !ok || l.Numbers != nil {
		return nil, false
	}
	return l.Integers, true
}

// NumbersOf returns the elements of a float value that does not depend on data, such as the scales of a Resize.
func (f *Facts) NumbersOf(v Value) ([]float64, bool) {
	l, ok := f.LiteralOf(v.Name)
	if !ok || l.Numbers == nil {
		return nil, false
	}
	return l.Numbers, true
}

// evaluate computes a literal of f itself.
func (f *Facts) evaluate(name string) (l Literal, ok bool) {
	if t := f.tensors[name]; t != nil {
		return DecodeTensor(t)
	}
	p := f.producers[name]
	compute := folds[p.OpType]
	if compute == nil || !Standard(p) {
		return Literal{}, false
	}
	n, err := f.Understand(p)
	if err != nil || n.Outputs[0].Size() > largestLiteral {
		return Literal{}, false
	}
	switch n.Op {
	case "Shape":
		dims := shapeOf(n)
		return vector(dims), !slices.ContainsFunc(dims, func(d int) bool { return d < 0 })
	case "Size":
		return Literal{dtype: Int64, Integers: []int{n.Inputs[0].Size()}}, true
	case "Constant":
		return constantOf(n)
	}
	in, ok := f.literalsOf(n)
	if !ok {
		return Literal{}, false
	}
	defer func() {
		if recover() != nil { // a division by zero, or an index outside the input
			l, ok = Literal{}, false
		}
	}()
	l, ok = compute(n, in)
	l.dtype, l.dims = n.Outputs[0].DType, n.Outputs[0].Dims
	return l, ok && len(l.Integers)+len(l.Numbers) == Size(l.dims)
}

// literalsOf returns the elements of all inputs of n. Omitted inputs are empty.
func (f *Facts) literalsOf(n *Node) ([]Literal, bool) {
	out := make([]Literal, len(n.Inputs))
	for i, in := range n.Inputs {
		if in.Name == "" {
			continue
		}
		var ok bool
		if out[i], ok = f.LiteralOf(in.Name); !ok {
			return nil, false
		}
	}
	return out, true
}

// vector returns a literal of rank 1.
func vector(x []int) Literal { return Literal{dtype: Int64, dims: []int{len(x)}, Integers: x} }

// isFloat reports whether the elements are numbers.
func (t DType) isFloat() bool { return t == Float || t == Double || t == Float16 }

// round returns the elements as integers, cut towards zero.
func (l Literal) round() []int {
	if !l.dtype.isFloat() {
		return l.Integers
	}
	out := make([]int, len(l.Numbers))
	for i, x := range l.Numbers {
		out[i] = int(x)
	}
	return out
}

// Floats returns the elements as numbers.
func (l Literal) Floats() []float64 {
	if l.dtype.isFloat() {
		return l.Numbers
	}
	out := make([]float64, len(l.Integers))
	for i, x := range l.Integers {
		out[i] = float64(x)
	}
	return out
}

// pick returns the elements at the given positions.
func (l Literal) pick(at []int) Literal {
	var out Literal
	if l.dtype.isFloat() {
		out.Numbers = make([]float64, len(at))
		for i, k := range at {
			out.Numbers[i] = l.Numbers[k]
		}
		return out
	}
	out.Integers = make([]int, len(at))
	for i, k := range at {
		out.Integers[i] = l.Integers[k]
	}
	return out
}

// A fold computes the elements of a node's output from those of its inputs.
type fold func(n *Node, in []Literal) (Literal, bool)

var folds = func() map[string]fold {
	typed := func(*Node, []Literal) (Literal, bool) { return Literal{}, false } // from types only, see evaluate
	copied := func(_ *Node, in []Literal) (Literal, bool) { return in[0], true }
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
func rounded(t DType, x []float64) Literal {
	if t == Float {
		for i := range x {
			x[i] = float64(float32(x[i]))
		}
	}
	return Literal{dtype: t, Numbers: x}
}

func foldUnary(f func(float64) float64) fold {
	return func(n *Node, in []Literal) (Literal, bool) {
		x := make([]float64, in[0].count())
		for i, v := range in[0].Floats() {
			x[i] = f(v)
		}
		l := rounded(n.Outputs[0].DType, x)
		if !n.Outputs[0].DType.isFloat() {
			l.Numbers, l.Integers = nil, make([]int, len(x))
			for i := range x {
				l.Integers[i] = int(x[i])
			}
		}
		return l, n.Outputs[0].DType != Float16
	}
}

func (l Literal) count() int { return len(l.Integers) + len(l.Numbers) }

func foldBinary(f operator) fold {
	return func(n *Node, in []Literal) (Literal, bool) {
		acc := in[0].stretch(n.Outputs[0].Dims)
		acc.dtype = in[0].dtype
		for _, other := range in[1:] {
			b := other.stretch(n.Outputs[0].Dims)
			if acc.dtype.isFloat() != other.dtype.isFloat() {
				return Literal{}, false
			}
			if !acc.dtype.isFloat() {
				for i := range acc.Integers {
					acc.Integers[i] = f.integers(acc.Integers[i], b.Integers[i])
				}
				continue
			}
			if f.numbers == nil {
				return Literal{}, false
			}
			for i := range acc.Numbers {
				acc.Numbers[i] = f.numbers(acc.Numbers[i], b.Numbers[i])
			}
		}
		if n.Outputs[0].DType == Bool && acc.Numbers != nil {
			return Literal{Integers: acc.round()}, true
		}
		if acc.dtype.isFloat() {
			return rounded(n.Outputs[0].DType, acc.Numbers), true
		}
		return acc, true
	}
}

// stretch repeats the elements to the given dimensions.
func (l Literal) stretch(dims []int) Literal {
	return l.pick(positions(dims, func(at []int) int {
		from := slices.Clone(at[len(dims)-len(l.dims):])
		for i, d := range l.dims {
			if d == 1 {
				from[i] = 0
			}
		}
		return offset(l.dims, from)
	}))
}
