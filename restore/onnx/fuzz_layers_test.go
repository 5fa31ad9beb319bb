package onnx_test

import (
	"slices"

	"ddiff/restore/onnx"
)

// layer adds a layer of networks.
func (f *fuzzer) layer() onnx.Value {
	layers := []func() onnx.Value{f.conv, f.conv, f.convTranspose, f.pool, f.resize, f.norm, f.softmax}
	return layers[f.IntN(len(layers))]()
}

func (f *fuzzer) conv() onnx.Value {
	group, stride, dilation := 1+f.IntN(2), 1+f.IntN(2), 1+f.IntN(2)
	v := f.image(2, 4, 6, 5)
	w := f.weights(0.3, 2*group, 4/group, 3, 2)
	p := f.IntN(3)
	side := func(length, kernel, pads int) int { return (length+pads-dilation*(kernel-1)-1)/stride + 1 }
	a := attrs{"group": group, "strides": []int{stride, stride}, "dilations": []int{dilation, dilation}, "pads": []int{p, 1, 0, p}, "kernel_shape": []int{3, 2}}
	in := []onnx.Value{v, w}
	if f.coin(0.5) {
		in = append(in, f.weights(1, 2*group))
	}
	return f.node("Conv", a, []int{2, 2 * group, side(6, 3, p), side(5, 2, 1+p)}, in...)
}

func (f *fuzzer) convTranspose() onnx.Value {
	group, stride := 1+f.IntN(2), 1+f.IntN(2)
	p := f.IntN(2)
	extra := f.IntN(stride)
	a := attrs{"group": group, "strides": []int{stride, 1}, "pads": []int{p, 0, 0, p}, "output_padding": []int{extra, 0}}
	return f.node("ConvTranspose", a, []int{2, 2 * group, stride*3 + 3 - p + extra, 4 + 2 - p}, f.image(2, 4, 4, 5), f.weights(0.3, 4, 2, 3, 2))
}

func (f *fuzzer) pool() onnx.Value {
	v := f.image(2, 2, 4, 6)
	switch f.IntN(4) {
	case 0:
		return f.node("GlobalAveragePool", nil, []int{2, 2, 1, 1}, v)
	case 1:
		return f.node("AveragePool", attrs{"kernel_shape": []int{2, 2}, "strides": []int{2, 2}}, []int{2, 2, 2, 3}, v)
	case 2:
		return f.node("AveragePool", attrs{"kernel_shape": []int{3, 2}, "pads": []int{1, 0, 1, 1}, "count_include_pad": f.IntN(2)}, []int{2, 2, 4, 6}, v)
	default:
		if f.opset < 16 { // refused by name
			return v
		}
		return f.node("MaxPool", attrs{"kernel_shape": []int{3, 2}, "strides": []int{1, 2}}, []int{2, 2, 2, 3}, f.apart(v))
	}
}

func (f *fuzzer) resize() onnx.Value {
	v := f.image(1, 2, 3, 4)
	mode := choose(f, "nearest", "linear")
	a := attrs{"mode": mode, "coordinate_transformation_mode": choose(f, "asymmetric", "half_pixel", "align_corners")}
	if mode == "nearest" {
		a["nearest_mode"] = "floor"
		a["coordinate_transformation_mode"] = "asymmetric"
	}
	if f.coin(0.5) {
		return f.node("Resize", a, []int{1, 2, 6, 8}, v, onnx.Value{}, f.floats([]int{4}, func(i int) float64 { return []float64{1, 1, 2, 2}[i] }))
	}
	return f.node("Resize", a, []int{1, 2, 5, 7}, v, onnx.Value{}, onnx.Value{}, f.ints(1, 2, 5, 7))
}

func (f *fuzzer) norm() onnx.Value {
	v := f.image(2, 4, 3, 2)
	scale, shift := f.weights(1, 4), f.weights(1, 4)
	kind := f.IntN(4)
	if f.opset >= 21 && f.coin(0.5) {
		kind = 3
	}
	switch kind {
	case 0:
		return f.node("InstanceNormalization", attrs{"epsilon": 1e-2}, v.Dims, v, scale, shift)
	case 1:
		variance := f.floats([]int{4}, func(int) float64 { return 0.5 + f.Float64() })
		return f.node("BatchNormalization", nil, v.Dims, v, scale, shift, f.weights(1, 4), variance)
	case 2:
		if f.opset < 17 {
			return v
		}
		return f.node("LayerNormalization", attrs{"axis": -2, "epsilon": 1e-2}, v.Dims, v, f.weights(1, 3, 2), f.weights(1, 3, 2))
	default:
		if f.opset < 21 {
			return v
		}
		return f.node("GroupNormalization", attrs{"num_groups": 2, "epsilon": 1e-2}, v.Dims, v, scale, shift)
	}
}

func (f *fuzzer) softmax() onnx.Value {
	v := f.ranked(3)
	return f.node(choose(f, "Softmax", "LogSoftmax"), attrs{"axis": f.IntN(6) - 3}, v.Dims, v)
}

// dynamic adds shapes that the model computes.
func (f *fuzzer) dynamic() onnx.Value {
	v := f.ranked(3)
	a, b, c := v.Dims[0], v.Dims[1], v.Dims[2]
	shape := f.node("Shape", nil, []int{3}, v)
	at := func(i int) onnx.Value { return f.node("Gather", attrs{"axis": 0}, []int{1}, shape, f.ints(i)) }
	switch f.IntN(6) {
	case 0: // [n, -1] from the shape
		to := f.node("Concat", attrs{"axis": 0}, []int{2}, at(0), f.ints(-1))
		return f.node("Reshape", nil, []int{a, b * c}, v, to)
	case 1: // [n, b·c] with a product
		to := f.node("Concat", attrs{"axis": 0}, []int{2}, at(-3), f.node("Mul", nil, []int{1}, at(1), at(2)))
		return f.node("Reshape", nil, []int{a, b * c}, v, to)
	case 2: // Expand as torch.expand exports it
		one := f.node("ConstantOfShape", nil, []int{3}, f.ints(3))
		one = f.node("Cast", attrs{"to": 7}, []int{3}, f.node("Add", nil, []int{3}, one, f.scalar(1)))
		want := f.ints(-1, b, -1)
		mask := f.node("Equal", nil, []int{3}, want, f.node("Mul", nil, []int{3}, one, f.ints(-1)))
		want = f.node("Where", nil, []int{3}, mask, shape, want)
		return f.node("Expand", nil, v.Dims, f.reduce("ReduceMean", v, []int{1}, true), want)
	case 3: // the first half of an axis
		half := f.node("Div", nil, []int{1}, f.node("Add", nil, []int{1}, at(1), f.ints(1)), f.ints(2))
		return f.node("Slice", nil, []int{a, (b + 1) / 2, c}, v, f.ints(0), half, f.ints(1))
	case 4: // positions
		n := f.node("Squeeze", nil, []int{}, at(2))
		zero, one := f.node("Squeeze", nil, []int{}, f.ints(0)), f.node("Squeeze", nil, []int{}, f.ints(1))
		r := f.node("Cast", attrs{"to": 1}, []int{c}, f.node("Range", nil, []int{c}, zero, n, one))
		return f.node("Mul", nil, v.Dims, v, f.node("Sin", nil, []int{c}, r))
	default: // the shape of a part, with Slice, Unsqueeze and Squeeze
		tail := f.node("Slice", nil, []int{2}, shape, f.ints(1), f.ints(3))
		to := f.node("Concat", attrs{"axis": 0}, []int{4}, f.ints(0, 1), tail)
		dims := slices.Clone([]int{a, 1, b, c})
		return f.node("Reshape", nil, dims, v, to)
	}
}
