package onnx

import (
	"slices"

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
	pixels := float32(source.dims[2] * source.dims[3])
	name := b.part(v.of, "means")
	if v.kind == viewSquares {
		name = b.part(v.of, "squares")
	}
	if !b.inits[name] {
		b.inits[name] = true
		if v.kind == viewGroups {
			b.emit(blockedDomain, "GlobalAveragePool", name, []string{source.name}, nil)
		} else {
			b.norms(name, v.of, pixels)
		}
	}
	grouped := b.reshape(b.part(n.Output[0], "channels"), name, v.dims[0], v.dims[1], source.dims[1]/v.dims[1])
	for _, in := range n.Input[1:] {
		b.restore(in)
	}
	b.nodes = append(b.nodes, copied(n, n.Output[0], append([]string{grouped}, n.Input[1:]...)...))
	b.plain[n.Output[0]] = true
	return true
}

// norms adds the mean square of each channel: the convolution by channel of an image with itself has one pixel, the sum of squares.
func (b *blocker) norms(name, of string, pixels float32) {
	d := b.views[of].dims
	joined := b.joined(of)
	weights := b.reshape(b.part(name, "kernel"), joined, d[0]*d[1], 1, d[2], d[3])
	b.emit(blockedDomain, "Conv", b.part(name, "sums"), []string{joined, weights}, map[string]any{"group": d[0] * d[1]})
	scale := b.constant(b.part(name, "scale"), Float, func() []byte { return floatBytes([]float32{1 / pixels}) }, 1)
	b.emit("", "Mul", name, []string{b.part(name, "sums"), scale}, nil)
}

// reducesLast reports whether a reduction of a value of rank 3 is one of the last dimension.
func (b *blocker) reducesLast(n *onnxpb.NodeProto) bool {
	axes, _ := typed(n.Attribute)["axes"].([]int)
	if len(n.Input) > 1 && n.Input[1] != "" {
		l := b.literal(n.Input[1])
		if l == nil {
			return false
		}
		axes = l.integers
	}
	return slices.Equal(axes, []int{2}) || slices.Equal(axes, []int{-1})
}
