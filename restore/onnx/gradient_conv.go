package onnx

import (
	"slices"

	"ddiff/internal/restore/onnx/infer"
)

// convRule builds the gradient of a convolution: a convolution with the transposed and reversed kernel for stride 1, else
// a transposed convolution. On a CPU, ConvTranspose takes about twice as long. The runtime folds the transposition of a
// constant kernel.
func convRule(g *Graph, n *infer.Node, k int, dy Value) (Value, error) {
	x, weight := n.Inputs[0], n.Inputs[1]
	w, err := infer.WindowOf(n, x.Dims[2:], weight.Dims[2:])
	if err != nil {
		return Value{}, err
	}
	group := n.Integer("group", 1)
	switch k {
	case 0:
		return g.convInput(x.Dims, weight, dy, w, group), nil
	case 1:
		return g.kernelGradient(x, dy, weight.Dims, w, group), nil
	}
	return g.sumChannels(dy), nil
}

// convInput is the gradient of a convolution with respect to its input of the given shape.
func (g *Graph) convInput(dims []int, weight, dy Value, w infer.Window, group int) Value {
	flipped := infer.Window{Kernel: w.Kernel, Stride: w.Stride, Dilation: w.Dilation}
	for i := range w.Kernel {
		flipped.Before = append(flipped.Before, w.Reach(i)-1-w.Before[i])
		flipped.After = append(flipped.After, w.Reach(i)-1-w.After[i])
	}
	if slices.Max(w.Stride) == 1 && min(slices.Min(flipped.Before), slices.Min(flipped.After)) >= 0 {
		return g.op("Conv", flipped.Attributes(map[string]any{"group": group}), dy, g.flipKernel(weight, group))
	}
	attrs := w.Attributes(map[string]any{"group": group, "output_padding": w.Rest(dims[2:], dy.Dims[2:])})
	return g.op("ConvTranspose", attrs, dy, weight)
}

// flipKernel exchanges the channels of a kernel [M, C/g, ...] to [C, M/g, ...] and reverses its spatial dimensions.
func (g *Graph) flipKernel(w Value, group int) Value {
	spatial := w.Dims[2:]
	perm := []int{0, 2, 1}
	for i, side := range spatial {
		if side > 1 {
			w = g.Reverse(w, 2+i)
		}
		perm = append(perm, 3+i)
	}
	outside, inside := w.Dims[0]/group, w.Dims[1]
	w = g.Reshape(w, slices.Concat([]int{group, outside, inside}, spatial)...)
	return g.Reshape(g.Transpose(w, perm...), slices.Concat([]int{group * inside, outside}, spatial)...)
}

// kernelGradient is the gradient with respect to a kernel of the given shape: the correlation, in each group, of the wide
// side's pixels with the narrow side's, which are the input and dy for Conv, dy and the input for ConvTranspose.
func (g *Graph) kernelGradient(wide, narrow Value, dims []int, w infer.Window, group int) Value {
	batch, each := wide.Dims[0], wide.Dims[1]/group
	spatial := wide.Dims[2:]
	order := func(lead ...int) []int {
		for range spatial {
			lead = append(lead, len(lead))
		}
		return lead
	}
	// [N, g·c, ...] to [c, g·N, ...]
	in := g.Reshape(wide, slices.Concat([]int{batch, group, each}, spatial)...)
	in = g.Reshape(g.Transpose(in, order(2, 1, 0)...), slices.Concat([]int{each, group * batch}, spatial)...)
	kernel := g.Transpose(narrow, order(1, 0)...)

	swapped := infer.Window{Kernel: narrow.Dims[2:], Stride: w.Dilation, Dilation: w.Stride, Before: w.Before, After: w.After}
	dw := g.op("Conv", swapped.Attributes(map[string]any{"group": group}), in, kernel)
	for i, side := range dims[2:] {
		if dw.Dims[2+i] > side {
			dw = g.Slice(dw, 2+i, 0, side)
		}
	}
	return g.Transpose(dw, order(1, 0)...)
}

// sumChannels sums dy over all dimensions but the channels, to the shape of a bias.
func (g *Graph) sumChannels(dy Value) Value {
	axes := []int{0}
	for i := 2; i < dy.Rank(); i++ {
		axes = append(axes, i)
	}
	return g.Reshape(g.ReduceSum(dy, axes...), dy.Dims[1])
}

// convTransposeRule builds the gradient of a transposed convolution, which is a convolution with the same kernel.
func convTransposeRule(g *Graph, n *infer.Node, k int, dy Value) (Value, error) {
	x, weight := n.Inputs[0], n.Inputs[1]
	w, err := infer.TransposedWindowOf(n, x.Dims[2:], dy.Dims[2:], weight.Dims[2:])
	if err != nil {
		return Value{}, err
	}
	group := n.Integer("group", 1)
	switch k {
	case 0:
		return g.op("Conv", w.Attributes(map[string]any{"group": group}), dy, weight), nil
	case 1:
		return g.kernelGradient(dy, x, weight.Dims, w, group), nil
	}
	return g.sumChannels(dy), nil
}
