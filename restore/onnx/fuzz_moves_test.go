package onnx_test

import (
	"math"
	"slices"

	"ddiff/restore/onnx"
)

// move adds an operation that moves elements.
func (f *fuzzer) move() onnx.Value {
	moves := []func() onnx.Value{f.reshape, f.transpose, f.squeeze, f.slice, f.split, f.concat, f.gather, f.expand, f.tile, f.pad, f.blocks, f.cast, f.scan}
	return moves[f.IntN(len(moves))]()
}

func (f *fuzzer) reshape() onnx.Value {
	v := f.ranked(3)
	a, b, c := v.Dims[0], v.Dims[1], v.Dims[2]
	switch f.IntN(4) {
	case 0:
		return f.node("Reshape", nil, []int{a, b * c}, v, f.ints(0, -1))
	case 1:
		return f.node("Reshape", nil, []int{c, b, a}, v, f.ints(c, -1, a))
	case 2:
		return f.node("Flatten", attrs{"axis": choose(f, 2, -1)}, []int{a * b, c}, v)
	default:
		return f.node("Reshape", nil, []int{a, 1, b, c}, v, f.ints(0, 1, b, c))
	}
}

func (f *fuzzer) transpose() onnx.Value {
	v := f.pick()
	if f.coin(0.3) {
		dims := slices.Clone(v.Dims)
		slices.Reverse(dims)
		return f.node("Transpose", nil, dims, v)
	}
	perm := f.Perm(v.Rank())
	dims := make([]int, len(perm))
	for i, p := range perm {
		dims[i] = v.Dims[p]
	}
	return f.node("Transpose", attrs{"perm": perm}, dims, v)
}

func (f *fuzzer) squeeze() onnx.Value {
	v := f.ranked(2)
	wide := f.node("Unsqueeze", nil, []int{v.Dims[0], 1, v.Dims[1], 1}, v, f.ints(-1, 1))
	switch f.IntN(3) {
	case 0:
		return wide
	case 1:
		return f.node("Squeeze", nil, []int{v.Dims[0], v.Dims[1], 1}, wide, f.ints(-3))
	default:
		dims := []int{}
		for _, d := range v.Dims {
			if d != 1 {
				dims = append(dims, d)
			}
		}
		return f.node("Squeeze", nil, dims, wide)
	}
}

func (f *fuzzer) slice() onnx.Value {
	v := f.ranked(2 + f.IntN(2))
	const far = 1<<63 - 1
	switch f.IntN(4) {
	case 0: // several axes
		dims := slices.Clone(v.Dims)
		dims[0], dims[1] = (dims[0]+1)/2, max(1, dims[1]-1)
		return f.node("Slice", nil, dims, v, f.ints(0, -dims[1]), f.ints(far, far), f.ints(0, 1), f.ints(2, 1))
	case 1: // reversed
		return f.node("Slice", nil, v.Dims, v, f.ints(-1), f.ints(-far), f.ints(-1), f.ints(-1))
	case 2: // reversed in steps
		dims := slices.Clone(v.Dims)
		dims[1] = (dims[1] + 1) / 2
		return f.node("Slice", nil, dims, v, f.ints(far), f.ints(-far-1), f.ints(1), f.ints(-2))
	default: // without axes
		dims := slices.Clone(v.Dims)
		dims[0] -= dims[0] / 2
		return f.node("Slice", nil, dims, v, f.ints(v.Dims[0]/2), f.ints(v.Dims[0]))
	}
}

func (f *fuzzer) split() onnx.Value {
	v := f.ranked(2)
	ax := f.IntN(2)
	if v.Dims[ax] < 2 {
		v = f.node("Concat", attrs{"axis": ax}, func() []int { d := slices.Clone(v.Dims); d[ax] *= 2; return d }(), v, f.node("Sin", nil, v.Dims, v))
	}
	n := v.Dims[ax]
	first, second := slices.Clone(v.Dims), slices.Clone(v.Dims)
	first[ax], second[ax] = 1, n-1
	in, a := []onnx.Value{v, f.ints(1, n-1)}, attrs{"axis": ax}
	switch {
	case f.opset >= 18 && f.coin(0.5): // the last part may be smaller
		first[ax], second[ax] = (n+1)/2, n/2
		in, a["num_outputs"] = in[:1], 2
	case f.opset < 18 && n%2 == 0 && f.coin(0.5):
		first[ax], second[ax] = n/2, n/2
		in = in[:1]
	}
	parts := f.nodes("Split", a, [][]int{first, second}, in...)
	if f.coin(0.5) {
		return parts[f.IntN(2)]
	}
	return f.node("Concat", attrs{"axis": ax}, v.Dims, f.node("Sin", nil, second, parts[1]), parts[0])
}

func (f *fuzzer) concat() onnx.Value {
	v := f.ranked(1 + f.IntN(3))
	ax := f.IntN(v.Rank())
	dims, more := slices.Clone(v.Dims), slices.Clone(v.Dims)
	more[ax] = 2
	dims[ax] = 2*dims[ax] + 2
	return f.node("Concat", attrs{"axis": ax - v.Rank()}, dims, f.node("Sin", nil, v.Dims, v), f.weights(1, more...), v)
}

func (f *fuzzer) gather() onnx.Value {
	v := f.ranked(3)
	ax := f.IntN(3)
	n := v.Dims[ax]
	indices := func(count int) onnx.Value {
		at := make([]int, count)
		for i := range at {
			at[i] = f.IntN(2*n) - n
		}
		return f.ints(at...)
	}
	switch f.IntN(4) {
	case 0:
		dims := slices.Clone(v.Dims)
		dims[ax] = 4
		return f.node("Gather", attrs{"axis": ax}, dims, v, indices(4))
	case 1:
		at := f.node("Squeeze", nil, []int{}, indices(1))
		return f.node("Gather", attrs{"axis": ax - 3}, slices.Delete(slices.Clone(v.Dims), ax, ax+1), v, at)
	case 2:
		if f.opset < 16 {
			return v
		}
		count := v.Size()
		at := f.node("Reshape", nil, v.Dims, indices(count), f.ints(v.Dims...))
		return f.node("GatherElements", attrs{"axis": ax}, v.Dims, v, at)
	default:
		flat := f.node("Reshape", nil, []int{v.Size()}, f.apart(v), f.ints(-1))
		k := min(2, v.Size())
		top := f.nodes("TopK", nil, [][]int{{k}, {k}}, flat, f.ints(k))
		return top[0]
	}
}

func (f *fuzzer) expand() onnx.Value {
	v := f.ranked(2)
	wide := f.node("Unsqueeze", nil, []int{v.Dims[0], 1, v.Dims[1]}, v, f.ints(1))
	return f.node("Expand", nil, []int{2, v.Dims[0], 3, v.Dims[1]}, wide, f.ints(2, 1, 3, v.Dims[1]))
}

func (f *fuzzer) tile() onnx.Value {
	v := f.ranked(3)
	repeats := []int{1 + f.IntN(2), 1 + f.IntN(3), 1}
	return f.node("Tile", nil, []int{v.Dims[0] * repeats[0], v.Dims[1] * repeats[1], v.Dims[2]}, v, f.ints(repeats...))
}

func (f *fuzzer) pad() onnx.Value {
	v := f.ranked(3)
	b, c := v.Dims[1], v.Dims[2]
	mode := choose(f, "constant", "edge", "reflect", "constant")
	pads := []int{0, 1, f.IntN(3), 0, f.IntN(3), 1}
	if mode == "reflect" {
		pads = []int{0, min(1, b-1), f.IntN(c), 0, f.IntN(b), min(1, c-1)}
	}
	if mode == "constant" && c > 2 && f.coin(0.4) {
		pads[2], pads[5] = -1, -1 // remove elements
	}
	in := []onnx.Value{v, f.ints(pads...)}
	if mode == "constant" && f.coin(0.5) {
		in = append(in, f.scalar(0.5))
	}
	dims := []int{v.Dims[0], b + pads[1] + pads[4], c + pads[2] + pads[5]}
	if f.opset >= 18 && mode != "reflect" && f.coin(0.5) {
		in = []onnx.Value{v, f.ints(pads[2], pads[1], pads[5], pads[4]), {}, f.ints(-1, 1)}
	}
	return f.node("Pad", attrs{"mode": mode}, dims, in...)
}

// image returns a value of shape [N, C, H, W] from a matrix product, with at least the given sides.
func (f *fuzzer) image(n, c, h, w int) onnx.Value {
	v := f.ranked(2)
	v = f.node("MatMul", nil, []int{v.Dims[0], n * c * h * w}, v, f.weights(0.5/math.Sqrt(float64(v.Size())), v.Dims[1], n*c*h*w))
	v = f.reduce("ReduceSum", v, []int{0}, false)
	return f.node("Tanh", nil, []int{n, c, h, w}, f.node("Reshape", nil, []int{n, c, h, w}, v, f.ints(n, c, h, w)))
}

func (f *fuzzer) blocks() onnx.Value {
	if f.coin(0.5) {
		return f.node("SpaceToDepth", attrs{"blocksize": 2}, []int{2, 8, 2, 1}, f.image(2, 2, 4, 2))
	}
	return f.node("DepthToSpace", attrs{"blocksize": 2, "mode": choose(f, "DCR", "CRD")}, []int{2, 2, 4, 2}, f.image(2, 8, 2, 1))
}

// cast computes in double.
func (f *fuzzer) cast() onnx.Value {
	const float, double = 1, 11
	v := f.pick()
	d := f.node("Cast", attrs{"to": double}, v.Dims, v)
	c := f.node("Cast", attrs{"to": double}, []int{}, f.scalar(0.7))
	d = f.node("Mul", nil, v.Dims, f.node("Sin", nil, v.Dims, d), c)
	return f.node("Cast", attrs{"to": float}, v.Dims, d)
}

// scan adds the rarer operations.
func (f *fuzzer) scan() onnx.Value {
	v := f.ranked(2)
	switch f.IntN(7) {
	case 0:
		at := f.node("Squeeze", nil, []int{}, f.ints(choose(f, 1, -2)))
		return f.node("CumSum", attrs{"exclusive": f.IntN(2), "reverse": f.IntN(2)}, v.Dims, v, at)
	case 1:
		if f.opset < 14 {
			return v
		}
		at := f.node("Squeeze", nil, []int{}, f.ints(choose(f, 1, 0, -1)))
		return f.node("Trilu", attrs{"upper": f.IntN(2)}, v.Dims, v, at)
	case 2:
		return f.node("Dropout", nil, v.Dims, v)
	case 3:
		if f.opset < 15 {
			return v
		}
		return f.node("CastLike", nil, v.Dims, f.node("Sin", nil, v.Dims, v), f.scalar(1))
	case 4:
		if f.opset < 16 { // refused by name
			return v
		}
		at := f.node("Reshape", nil, []int{2, 1}, f.ints(0, v.Dims[0]-1), f.ints(2, 1))
		return f.node("GatherND", nil, []int{2, v.Dims[1]}, v, at)
	case 5:
		at := f.node("Reshape", nil, []int{1, v.Dims[1]}, f.ints(make([]int, v.Dims[1])...), f.ints(1, -1))
		row := f.reduce("ReduceMean", f.node("Sin", nil, v.Dims, v), []int{0}, true)
		return f.node("ScatterElements", attrs{"axis": 0}, v.Dims, v, at, row)
	default: // one row replaced
		at := f.node("Reshape", nil, []int{1, 1}, f.ints(v.Dims[0]-1), f.ints(1, 1))
		row := f.reduce("ReduceMean", f.node("Sin", nil, v.Dims, v), []int{0}, true)
		return f.node("ScatterND", nil, v.Dims, v, at, row)
	}
}
