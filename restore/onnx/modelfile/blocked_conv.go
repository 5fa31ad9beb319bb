package modelfile

import (
	"slices"

	"ddiff/restore/onnx/infer"
	"ddiff/restore/onnx/onnxpb"
)

// convolution adds a convolution of one group with constant weights. Kernels with fewer input channels than a block read images in
// their own layout.
func (b *blocker) convolution(n *onnxpb.NodeProto) bool {
	x, y := b.dims(n.Input[0]), b.dims(n.Output[0])
	w, dims := b.weight(n.Input[1])
	attrs := infer.DecodeAttributes(n.Attribute)
	if len(x) != 4 || len(y) != 4 || len(dims) != 4 || attrs["group"] != nil && attrs["group"] != 1 {
		return false
	}
	out, in, c := dims[0], dims[1], b.channelsPerBlock
	bias := make([]float32, out)
	if len(n.Input) > 2 && n.Input[2] != "" {
		if bias, _ = b.weight(n.Input[2]); len(bias) != out {
			return false
		}
	}
	v := b.views[n.Input[0]]
	if v != nil && v.kind == viewUpsized && out%c == 0 && isSame3x3(attrs, dims) {
		b.phases(n.Output[0], v.of, w, dims, bias, y)
		return true
	}
	// Of fewer channels than a block, kernels read images in their own layout, also if a convolution filled up the block.
	blocked := in >= c && (b.imageOf(n.Input[0]) != nil || v != nil && v.kind == viewPadded)
	var input string
	switch {
	case !blocked && out < c:
		return false
	case blocked:
		input = b.computed(n.Input[0])
	case in < c:
		b.restore(n.Input[0])
		input = n.Input[0]
	case in%4 == 0: // ReorderInput needs it
		b.restore(n.Input[0])
		b.emit(BlockedDomain, "ReorderInput", b.blockedName(n.Input[0]), []string{n.Input[0]}, nil)
		input = b.add(n.Input[0], x).name
	default:
		return false
	}
	delete(attrs, "kernel_shape")
	b.conv(n.Output[0], input, blockedKernel(w, dims, c), bias, attrs, y)
	return true
}

// kernel is a convolution's weights in the blocked layout.
type kernel struct {
	data []float32
	dims []int // [out, in, height, width], out and in filled up to whole blocks
}

// blockedKernel orders weights [out, in, height, width] as [out/c, in/c, height, width, c of in, c of out], with zeros for missing channels.
// With less than c input channels the order is [out/c, in, height, width, c of out].
func blockedKernel(w []float32, dims []int, c int) kernel {
	out, in, area := dims[0], dims[1], dims[2]*dims[3]
	outs, ins := (out+c-1)/c*c, in
	if in >= c {
		ins = (in + c - 1) / c * c
	}
	k := kernel{make([]float32, outs*ins*area), []int{outs, ins, dims[2], dims[3]}}
	group := min(c, ins) // input channels per block; all of them if they are no whole block
	for o := range out {
		for i := range in {
			// The position of the block, then of the pixel, then of the channels.
			block := (o/c*(ins/group) + i/group) * area
			for p := range area {
				at := block + p
				if in >= c {
					at = at*c + i%c
				} else {
					at = o/c*ins*area + i*area + p
				}
				k.data[at*c+o%c] = w[(o*in+i)*area+p]
			}
		}
	}
	return k
}

// conv adds a convolution whose result is the value name.
func (b *blocker) conv(name, input string, k kernel, bias []float32, attrs map[string]any, dims []int) {
	bias = append(slices.Clone(bias), make([]float32, k.dims[0]-len(bias))...)
	weights := b.constant(b.part(name, "kernel"), infer.Float, func() []byte { return infer.FloatBytes(k.data) }, k.dims...)
	biases := b.constant(b.part(name, "bias"), infer.Float, func() []byte { return infer.FloatBytes(bias) }, len(bias))
	node := b.emit(BlockedDomain, "Conv", b.blockedName(name), []string{input, weights, biases}, attrs)
	if v := b.add(name, dims); v.kind == viewImage {
		v.conv = node
	}
}

// isSame3x3 reports whether a convolution has a kernel of 3×3 and a margin of one pixel, and no stride or dilation.
func isSame3x3(attrs map[string]any, dims []int) bool {
	each := func(name string, otherwise, want int) bool {
		given, ok := attrs[name].([]int)
		if !ok {
			return otherwise == want
		}
		return !slices.ContainsFunc(given, func(v int) bool { return v != want })
	}
	pad, ok := attrs["auto_pad"]
	return dims[2] == 3 && dims[3] == 3 && each("pads", 0, 1) && each("strides", 1, 1) && each("dilations", 1, 1) && (!ok || pad == "NOTSET")
}

// phases adds a convolution of 3×3 of an image whose pixels are repeated 2×2. Rows of equal parity have a kernel of two rows of the small
// image, in which rows of the large kernel that meet the same pixels are added; columns as well. So one kernel of 2×2 has four times the
// channels, for odd and even rows and columns of the result. With a margin of one pixel its row i has row 2i−1 and row 2i of the result, and the
// first and the last row are cut off.
func (b *blocker) phases(name, of string, w []float32, dims []int, bias []float32, y []int) {
	out, in, c := dims[0], dims[1], b.channelsPerBlock
	small := b.views[of]
	h, wide := small.dims[2], small.dims[3]
	wide1, h1 := wide+1, h+1
	k := make([]float32, 4*out*in*4)
	// sums[phase][tap] lists the rows of the large kernel.
	sums := [2][2][]int{{{0, 1}, {2}}, {{0}, {1, 2}}}
	for p := range 4 {
		for o := range out {
			for i := range in {
				for t := range 4 {
					var sum float64
					for _, r := range sums[p/2][t/2] {
						for _, s := range sums[p%2][t%2] {
							sum += float64(w[((o*in+i)*3+r)*3+s])
						}
					}
					k[((p*out+o)*in+i)*4+t] = float32(sum)
				}
			}
		}
	}
	fours := b.part(name, "phases")
	b.conv(fours, small.name, blockedKernel(k, []int{4 * out, in, 2, 2}, c), slices.Repeat(bias, 4), map[string]any{"pads": []int{1, 1, 1, 1}},
		[]int{y[0], 4 * out, h1, wide1})
	parts := b.reshape(b.part(fours, "parts"), b.blockedName(fours), y[0], 2, 2, out/c, h1, wide1, c)
	b.emit("", "Transpose", b.part(fours, "moved"), []string{parts}, map[string]any{"perm": []int{0, 3, 4, 1, 5, 2, 6}})
	whole := b.reshape(b.part(fours, "whole"), b.part(fours, "moved"), y[0]*out/c, 2*h1, 2*wide1, c)
	b.emit("", "Slice", b.part(fours, "cut"), []string{whole, b.integers(1, 1), b.integers(2*h+1, 2*wide+1), b.integers(1, 2)}, nil)
	b.reshape(b.blockedName(name), b.part(fours, "cut"), y...)
	b.add(name, y)
}
