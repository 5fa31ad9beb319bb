package onnx_test

import (
	"slices"

	"ddiff/restore/onnx"
)

// choose returns a random element.
func choose[T any](f *fuzzer, list ...T) T { return list[f.IntN(len(list))] }

// smooth adds a smooth function.
func (f *fuzzer) smooth() onnx.Value {
	v := f.pick()
	ops := []string{"Tanh", "Sigmoid", "Sin", "Cos", "Softplus", "Softsign", "Neg", "Erf", "Atan", "SiLU", "Exp", "Square", "Log", "Sqrt", "Reciprocal", "Tan", "Pow"}
	if f.opset >= 18 {
		ops = append(ops, "Mish")
	}
	if f.opset >= 20 {
		ops = append(ops, "Gelu")
	}
	switch op := choose(f, ops...); op {
	case "SiLU":
		return f.node("Mul", nil, v.Dims, v, f.node("Sigmoid", nil, v.Dims, v))
	case "Square":
		t := f.node("Tanh", nil, v.Dims, v)
		return f.node("Mul", nil, v.Dims, t, t)
	case "Exp", "Log", "Sqrt", "Reciprocal", "Tan":
		return f.node(op, nil, v.Dims, f.above(v))
	case "Pow":
		p := choose(f, f.scalar(2), f.scalar(3), f.scalar(0.5), f.scalar(-1.5), f.scalar(0), f.scalar(1), f.ints(2), f.weights(1, 1), f.above(v))
		return f.node("Pow", nil, v.Dims, f.above(v), p)
	case "Gelu":
		return f.node(op, attrs{"approximate": choose(f, "none", "tanh")}, v.Dims, v)
	default:
		return f.node(op, nil, v.Dims, v)
	}
}

// kinked adds a function with kinks.
func (f *fuzzer) kinked() onnx.Value {
	v := f.pick()
	s := f.sided(v)
	switch op := choose(f, "Relu", "LeakyRelu", "Elu", "Selu", "Celu", "Abs", "HardSigmoid", "HardSwish", "ThresholdedRelu", "Clip", "PRelu", "Where", "Round"); op {
	case "LeakyRelu", "Elu", "Celu":
		return f.node(op, attrs{"alpha": choose(f, 0.2, 0.7, 1.5)}, v.Dims, s)
	case "HardSigmoid":
		s = f.node("Mul", nil, v.Dims, s, f.floats(v.Dims, func(int) float64 { return choose(f, 0.2, 5) }))
		return f.node(op, attrs{"alpha": 0.7, "beta": 0.4}, v.Dims, s)
	case "HardSwish":
		if f.opset < 14 {
			return s
		}
		return f.node(op, nil, v.Dims, f.node("Mul", nil, v.Dims, s, f.scalar(choose(f, 1.0, 6))))
	case "ThresholdedRelu":
		return f.node(op, attrs{"alpha": 0.5}, v.Dims, s)
	case "Clip":
		in := []onnx.Value{s, f.scalar(-0.5), f.scalar(5)}
		if f.coin(0.5) {
			in = choose(f, []onnx.Value{s, {}, f.scalar(0.5)}, in[:2])
		}
		return f.node(op, nil, v.Dims, in...)
	case "PRelu":
		slope := slices.Clone(v.Dims[f.IntN(v.Rank()+1):])
		for i := range slope {
			if f.coin(0.5) {
				slope[i] = 1
			}
		}
		return f.node(op, nil, v.Dims, s, f.weights(0.5, slope...))
	case "Where":
		c := f.node(choose(f, "Greater", "Less"), nil, v.Dims, s, f.scalar(0))
		return f.node("Where", nil, v.Dims, c, v, f.node("Sin", nil, v.Dims, v))
	case "Round": // the derivative of the rounded part is zero
		return f.node("Add", nil, v.Dims, v, f.node("Round", nil, v.Dims, s))
	default:
		return f.node(op, nil, v.Dims, s)
	}
}

// narrowed returns dimensions that broadcast to dims.
func (f *fuzzer) narrowed(dims []int) []int {
	out := slices.Clone(dims[f.IntN(len(dims)+1):])
	for i := range out {
		if f.coin(0.4) {
			out[i] = 1
		}
	}
	return out
}

// binary adds an operation of two values, the second often broadcast.
func (f *fuzzer) binary() onnx.Value {
	a := f.pick()
	b := f.weights(1, f.narrowed(a.Dims)...)
	switch {
	case a.Rank() > 0 && f.coin(0.4): // a smaller value that depends on x
		axes := []int{f.IntN(a.Rank())}
		dims := slices.Clone(a.Dims)
		dims[axes[0]] = 1
		b = f.reduce("ReduceMean", a, axes, true)
	case f.coin(0.3):
		b = f.node("Sin", nil, a.Dims, a)
	case f.coin(0.2): // a is the smaller one
		wide := append([]int{2}, a.Dims...)
		b = f.weights(1, wide...)
	}
	dims := a.Dims
	if len(b.Dims) > len(dims) {
		dims = b.Dims
	}
	op := choose(f, "Add", "Sub", "Mul", "Div", "Max", "Min", "Sum", "Mean", "Add", "Mul")
	if op == "Div" {
		b = f.above(b)
	}
	if op == "Max" || op == "Min" {
		a, b = f.sided(a), f.node("Neg", nil, b.Dims, f.node("Mul", nil, b.Dims, f.node("Sin", nil, b.Dims, b), f.scalar(0.3)))
	}
	in := []onnx.Value{a, b}
	if op != "Max" && op != "Min" && op != "Div" && op != "Sum" && op != "Mean" && f.coin(0.5) {
		in = []onnx.Value{b, a}
	}
	if (op == "Sum" || op == "Mean") && f.coin(0.5) {
		in = append(in, a)
	}
	return f.node(op, nil, dims, in...)
}

// product adds a product of matrices.
func (f *fuzzer) product() onnx.Value {
	switch f.IntN(8) {
	case 0: // activations times weights
		v := f.ranked(2 + f.IntN(3))
		k, n := v.Dims[v.Rank()-1], 1+f.IntN(4)
		return f.node("MatMul", nil, append(slices.Clone(v.Dims[:v.Rank()-1]), n), v, f.weights(0.5, k, n))
	case 1: // weights times activations, with broadcasting
		v := f.ranked(3)
		m := 1 + f.IntN(4)
		return f.node("MatMul", nil, []int{2, v.Dims[0], m, v.Dims[2]}, f.weights(0.5, 2, 1, m, v.Dims[1]), v)
	case 2: // vectors
		v := f.ranked(1 + f.IntN(3))
		w := f.weights(0.5, v.Dims[v.Rank()-1])
		return f.node("MatMul", nil, v.Dims[:v.Rank()-1], v, w)
	case 3:
		v := f.ranked(1)
		return f.node("MatMul", nil, []int{2, 3}, v, f.weights(0.5, 2, v.Dims[0], 3))
	case 4: // attention
		v := f.ranked(3)
		t := f.node("Transpose", attrs{"perm": []int{0, 2, 1}}, []int{v.Dims[0], v.Dims[2], v.Dims[1]}, v)
		return f.node("Tanh", nil, []int{v.Dims[0], v.Dims[1], v.Dims[1]}, f.node("MatMul", nil, []int{v.Dims[0], v.Dims[1], v.Dims[1]}, v, t))
	case 5, 6:
		return f.gemm()
	default:
		return f.einsum()
	}
}

func (f *fuzzer) gemm() onnx.Value {
	a, n := f.ranked(2), 1+f.IntN(4)
	ta, tb := f.IntN(2), f.IntN(2)
	m, k := a.Dims[ta], a.Dims[1-ta]
	b := f.weights(0.5, k, n)
	if tb == 1 {
		b = f.weights(0.5, n, k)
	}
	att := attrs{"transA": ta, "transB": tb, "alpha": 0.5}
	in := []onnx.Value{a, b}
	if f.coin(0.3) {
		in = []onnx.Value{b, a}
		att["transA"], att["transB"] = 1-tb, 1-ta
		m, n = b.Dims[1-tb], a.Dims[ta]
	}
	if f.coin(0.6) {
		c := f.weights(1, choose(f, []int{n}, []int{m, n}, []int{m, 1}, []int{1})...)
		if f.coin(0.3) {
			c = f.reduce("ReduceMean", f.node("Gemm", att, []int{m, n}, in...), []int{0}, true)
		}
		in = append(in, c)
		att["beta"] = 0.7
	}
	return f.node("Gemm", att, []int{m, n}, in...)
}

func (f *fuzzer) einsum() onnx.Value {
	v := f.ranked(3)
	a, b, c := v.Dims[0], v.Dims[1], v.Dims[2]
	switch f.IntN(5) {
	case 0:
		return f.node("Einsum", attrs{"equation": "abc,cd->abd"}, []int{a, b, 3}, v, f.weights(0.5, c, 3))
	case 1:
		return f.node("Tanh", nil, []int{a, b, b}, f.node("Einsum", attrs{"equation": "bct, bds -> bcd"}, []int{a, b, b}, v, v))
	case 2:
		return f.node("Einsum", attrs{"equation": "...c,c->..."}, []int{a, b}, v, f.weights(0.5, c))
	case 3:
		return f.node("Einsum", attrs{"equation": "kij->jk"}, []int{c, a}, v)
	default:
		return f.node("Einsum", attrs{"equation": "nct,nst"}, []int{b, 2}, v, f.weights(0.5, a, 2, c))
	}
}

// reduce adds a reduction over axes, which are an attribute or an input as the operator set wants.
func (f *fuzzer) reduce(op string, v onnx.Value, axes []int, keep bool) onnx.Value {
	dims := []int{}
	for i, d := range v.Dims {
		if !slices.Contains(axes, i) {
			dims = append(dims, d)
		} else if keep {
			dims = append(dims, 1)
		}
	}
	given := slices.Clone(axes)
	for i := range given {
		if f.coin(0.5) {
			given[i] -= v.Rank()
		}
	}
	a := attrs{}
	if !keep {
		a["keepdims"] = 0
	}
	if op == "ReduceSum" || f.opset >= 18 {
		return f.node(op, a, dims, v, f.ints(given...))
	}
	a["axes"] = given
	return f.node(op, a, dims, v)
}

// reduction adds a reduction.
func (f *fuzzer) reduction() onnx.Value {
	v := f.ranked(2 + f.IntN(3))
	axes := f.Perm(v.Rank())[:1+f.IntN(v.Rank())]
	op := choose(f, "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp")
	in := v
	switch op {
	case "ReduceMax", "ReduceMin":
		in = f.apart(v)
	case "ReduceL1":
		in = f.sided(v)
	case "ReduceL2", "ReduceLogSum":
		in = f.above(v)
	}
	if f.coin(0.2) { // over all dimensions
		return f.node(op, attrs{"keepdims": 0}, []int{}, in)
	}
	return f.reduce(op, in, axes, f.coin(0.5))
}
