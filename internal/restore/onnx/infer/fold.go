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
	if at.depth >= mostPending || at.elements > mostElements {
		return Literal{}, false
	}
	at.depth++
	defer func() { at.depth-- }()
	l, ok := at.evaluate(name)
	if ok {
		at.literals[name] = &l
	}
	return l, ok
}

// IntegersOf returns the elements of an integer value that does not depend on data, such as a shape, in row-major order.
func (f *Facts) IntegersOf(v Value) ([]int, bool) {
	l, ok := f.LiteralOf(v.Name)
	if !ok || l.dtype.isFloat() {
		return nil, false
	}
	return l.Integers(), true
}

// NumbersOf returns the elements of a float value that does not depend on data, such as the scales of a Resize.
func (f *Facts) NumbersOf(v Value) ([]float64, bool) {
	l, ok := f.LiteralOf(v.Name)
	return l.Elements, ok && l.dtype.isFloat()
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
	f.elements += max(0, n.Outputs[0].Size())
	l.dtype, l.dims = n.Outputs[0].DType, n.Outputs[0].Dims
	switch n.Op {
	case "Shape":
		l.Elements = numbers(shapeOf(n))
		return l, !slices.ContainsFunc(l.Elements, func(d float64) bool { return d < 0 })
	case "Size":
		l.Elements = numbers([]int{n.Inputs[0].Size()})
		return l, true
	case "Constant":
		return constantOf(n)
	}
	in, ok := f.literalsOf(n)
	if !ok {
		return Literal{}, false
	}
	defer func() {
		if recover() != nil { // an index outside the input
			l, ok = Literal{}, false
		}
	}()
	elements, ok := compute(n, in)
	if n.Op == "Slice" {
		elements, ok = f.foldSlice(n, in[0])
	}
	if !ok || len(elements) != Size(l.dims) {
		return Literal{}, false
	}
	l.Elements, ok = l.dtype.represent(elements)
	return l, ok
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

// isFloat reports whether the elements are numbers.
func (t DType) isFloat() bool { return t == Float || t == Double || t == Float16 }

// represent returns numbers as a type has them. ok is false for a type that is not evaluated, and for an integer that does not exist,
// such as the result of a division by zero.
func (t DType) represent(x []float64) (out []float64, ok bool) {
	out = slices.Clone(x)
	for i, v := range x {
		switch {
		case t == Float:
			out[i] = float64(float32(v))
		case t == Bool:
			out[i] = truth(v != 0)
		case t == Int64 || t == Int32:
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return nil, false
			}
			out[i] = math.Trunc(v)
		case t != Double:
			return nil, false
		}
	}
	return out, true
}

// pick returns the elements at the given positions.
func (l Literal) pick(at []int) []float64 {
	out := make([]float64, len(at))
	for i, k := range at {
		out[i] = l.Elements[k]
	}
	return out
}

// A fold computes the elements of a node's output from those of its inputs. The caller represents them in the output's type.
type fold func(n *Node, in []Literal) ([]float64, bool)

var folds = func() map[string]fold {
	own := func(*Node, []Literal) ([]float64, bool) { return nil, false } // see evaluate
	copied := func(_ *Node, in []Literal) ([]float64, bool) { return in[0].Elements, true }
	out := map[string]fold{
		"Shape": own, "Size": own, "Constant": own, "Slice": own,
		"Identity": copied, "Reshape": copied, "Squeeze": copied, "Unsqueeze": copied, "Flatten": copied, "Cast": copied,
		"ConstantOfShape": foldConstantOfShape, "Range": foldRange, "Gather": foldGather, "Concat": foldConcat,
		"Expand": foldExpand, "Where": foldWhere, "ReduceProd": foldReduce, "ReduceSum": foldReduce, "ReduceMax": foldReduce,
		"ReduceMin": foldReduce, "Transpose": foldTranspose,
	}
	for op, f := range map[string]func(float64) float64{
		"Floor": math.Floor, "Ceil": math.Ceil, "Round": math.RoundToEven, "Sqrt": math.Sqrt, "Exp": math.Exp, "Log": math.Log,
		"Neg": func(x float64) float64 { return -x }, "Abs": math.Abs, "Reciprocal": func(x float64) float64 { return 1 / x },
		"Not": func(x float64) float64 { return 1 - x },
	} {
		out[op] = foldUnary(f)
	}
	for op, f := range binaries {
		out[op] = foldBinary(f)
	}
	return out
}()

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

var binaries = map[string]func(a, b float64) float64{
	"Add": func(a, b float64) float64 { return a + b },
	"Sub": func(a, b float64) float64 { return a - b },
	"Mul": func(a, b float64) float64 { return a * b },
	"Div": func(a, b float64) float64 { return a / b },
	"Mod": func(a, b float64) float64 { return a - b*math.Floor(a/b) }, // with the sign of the divisor
	"Min": math.Min,
	"Max": math.Max,
	"Pow": math.Pow,

	"Equal":          func(a, b float64) float64 { return truth(a == b) },
	"Less":           func(a, b float64) float64 { return truth(a < b) },
	"Greater":        func(a, b float64) float64 { return truth(a > b) },
	"LessOrEqual":    func(a, b float64) float64 { return truth(a <= b) },
	"GreaterOrEqual": func(a, b float64) float64 { return truth(a >= b) },
	"And":            math.Min,
	"Or":             math.Max,
	"Xor":            func(a, b float64) float64 { return truth(a != b) },
}

func foldUnary(f func(float64) float64) fold {
	return func(_ *Node, in []Literal) ([]float64, bool) {
		out := make([]float64, len(in[0].Elements))
		for i, v := range in[0].Elements {
			out[i] = f(v)
		}
		return out, true
	}
}

func foldBinary(f func(a, b float64) float64) fold {
	return func(n *Node, in []Literal) ([]float64, bool) {
		if n.Op == "Mod" && in[0].dtype.isFloat() {
			return nil, false // has the sign of the dividend
		}
		dims := n.Outputs[0].Dims
		acc := in[0].stretch(dims)
		for _, other := range in[1:] {
			for i, b := range other.stretch(dims) {
				acc[i] = f(acc[i], b)
			}
		}
		return acc, true
	}
}

// stretch repeats the elements to the given dimensions.
func (l Literal) stretch(dims []int) []float64 {
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
