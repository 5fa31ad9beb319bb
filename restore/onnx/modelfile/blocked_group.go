package modelfile

import (
	"slices"

	"ddiff/restore/onnx/infer"
	"ddiff/restore/onnx/onnxpb"
)

// group delays a reshape of an image to [N, groups, rest], of which a normalisation computes statistics.
func (b *blocker) group(n *onnxpb.NodeProto) bool {
	v, d := b.views[n.Input[0]], b.dims(n.Output[0])
	if v == nil || v.kind != viewImage || len(d) != 3 || d[0] != v.dims[0] || v.dims[1]%d[1] != 0 {
		return false
	}
	b.views[n.Output[0]] = &view{kind: viewGroups, dims: d, of: n.Input[0], node: n}
	return true
}

// square delays the product of a grouped image with itself.
func (b *blocker) square(n *onnxpb.NodeProto) bool {
	v := b.views[n.Input[0]]
	if n.Input[0] != n.Input[1] || v == nil || v.kind != viewGroups {
		return false
	}
	b.views[n.Output[0]] = &view{kind: viewSquares, dims: v.dims, of: v.of, node: n}
	return true
}

// statistic adds the mean of the groups, or of their squares, from those of the channels.
func (b *blocker) statistic(n *onnxpb.NodeProto) bool {
	v := b.views[n.Input[0]]
	if v == nil || v.kind != viewGroups && v.kind != viewSquares || !b.reducesLast(n) {
		return false
	}
	source := b.views[v.of]
	name := b.part(v.of, "means")
	if v.kind == viewSquares {
		name = b.part(v.of, "squares")
	}
	if !b.inits[name] {
		b.inits[name] = true
		b.means(name, v.of, v.kind == viewSquares)
	}
	grouped := b.reshape(b.part(n.Output[0], "channels"), name, v.dims[0], v.dims[1], source.dims[1]/v.dims[1])
	for _, in := range n.Input[1:] {
		b.restore(in)
	}
	b.nodes = append(b.nodes, copied(n, n.Output[0], append([]string{grouped}, n.Input[1:]...)...))
	b.plain[n.Output[0]] = true
	return true
}

// largestSum is the number of pixels up to which a kernel adds a channel in one sum. It adds them one after the other in float32: the more
// it adds, the more digits are lost.
const largestSum = 4096

// stripes returns the number of parts of equal height of an image in which a channel is summed.
func stripes(height, width int) int {
	for r := range height {
		if r++; height%r == 0 && height/r*width <= largestSum {
			return r
		}
	}
	return height
}

// means adds the means of each channel of an image, or of its squares. Stripes of the image are channels of one with a single image: in the
// layout these are other dimensions of the same numbers. The convolution by channel of stripes with themselves has one pixel, the sum of squares.
func (b *blocker) means(name, of string, squares bool) {
	v := b.views[of]
	n, c, r := v.dims[0], v.dims[1], stripes(v.dims[2], v.dims[3])
	all, high, wide := n*c*r, v.dims[2]/r, v.dims[3]
	striped := b.part(of, "stripes")
	if !b.inits[striped] {
		b.inits[striped] = true
		b.reshape(striped, v.name, 1, all, high, wide)
	}
	parts := b.part(name, "stripes")
	if squares {
		weights := b.reshape(b.part(name, "kernel"), striped, all, 1, high, wide)
		b.emit(BlockedDomain, "Conv", b.part(name, "sums"), []string{striped, weights}, map[string]any{"group": all})
		scale := b.constant(b.part(name, "scale"), infer.Float, func() []byte { return infer.FloatBytes([]float32{1 / float32(high*wide)}) }, 1)
		b.emit("", "Mul", parts, []string{b.part(name, "sums"), scale}, nil)
	} else {
		b.emit(BlockedDomain, "GlobalAveragePool", parts, []string{striped}, nil)
	}
	if r == 1 {
		b.reshape(name, parts, n, c)
		return
	}
	apart := b.reshape(b.part(name, "apart"), parts, n*c/b.channelsPerBlock, r, b.channelsPerBlock)
	inputs, attrs := []string{apart}, map[string]any{"keepdims": 0}
	if b.model.Opset() >= 18 {
		inputs = append(inputs, b.integers(1))
	} else {
		attrs["axes"] = []int{1}
	}
	b.emit("", "ReduceMean", name, inputs, attrs)
}

// reducesLast reports whether a reduction of a value of rank 3 is one of the last dimension.
func (b *blocker) reducesLast(n *onnxpb.NodeProto) bool {
	axes, _ := infer.DecodeAttributes(n.Attribute)["axes"].([]int)
	if len(n.Input) > 1 && n.Input[1] != "" {
		l := b.literal(n.Input[1])
		if l == nil {
			return false
		}
		axes = l.Integers()
	}
	return slices.Equal(axes, []int{2}) || slices.Equal(axes, []int{-1})
}
