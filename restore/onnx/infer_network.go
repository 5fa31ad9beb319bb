package onnx

import "slices"

// networkShapes are the inferences of convolutions, pooling, resizing and normalisations with several outputs.
var networkShapes = map[string]inference{
	"Conv": convShape, "ConvTranspose": convTransposeShape, "MaxPool": poolShape, "AveragePool": poolShape, "LpPool": poolShape,
	"GlobalAveragePool": globalPoolShape, "GlobalMaxPool": globalPoolShape, "Resize": resizeShape, "LayerNormalization": layerNormShape,
	"Attention": attentionShape,
}

// positions returns the number of positions of the window in each spatial dimension.
func (w window) positions(spatial []int, ceil bool) []int {
	out := make([]int, len(spatial))
	for i, length := range spatial {
		free := length + w.before[i] + w.after[i] - w.reach(i)
		out[i] = free/w.stride[i] + 1
		if ceil && free%w.stride[i] != 0 && out[i]*w.stride[i] < length+w.before[i] {
			out[i]++ // a last window that begins in the image
		}
	}
	return out
}

func convShape(_ *facts, n *node) error {
	x, w := n.inputs[0], n.inputs[1]
	if x.Rank() != w.Rank() || x.Dims[1] != w.Dims[1]*n.integer("group", 1) {
		return misfit(n)
	}
	at, err := windowOf(n, x.Dims[2:], w.Dims[2:])
	if err != nil {
		return err
	}
	n.set(0, x.DType, append([]int{x.Dims[0], w.Dims[0]}, at.positions(x.Dims[2:], false)...))
	return nil
}

func convTransposeShape(_ *facts, n *node) error {
	x, w := n.inputs[0], n.inputs[1]
	if x.Rank() != w.Rank() || x.Dims[1] != w.Dims[0] {
		return misfit(n)
	}
	dims := []int{x.Dims[0], w.Dims[1] * n.integer("group", 1)}
	if given := n.integers("output_shape"); given != nil {
		n.set(0, x.DType, append(dims, given[len(given)-(x.Rank()-2):]...))
		return nil
	}
	g, err := windowAttributes(n, x.Rank()-2, w.Dims[2:])
	if err != nil {
		return err
	}
	extra := n.integers("output_padding")
	same := (n.text("auto_pad", "NOTSET") == "SAME_UPPER" || n.text("auto_pad", "NOTSET") == "SAME_LOWER")
	for i, length := range x.Dims[2:] {
		d := g.stride[i]*(length-1) + g.reach(i) - g.before[i] - g.after[i]
		if same {
			d = g.stride[i] * length
		}
		if extra != nil && !same {
			d += extra[i]
		}
		dims = append(dims, d)
	}
	n.set(0, x.DType, dims)
	return nil
}

func poolShape(_ *facts, n *node) error {
	x := n.inputs[0]
	at, err := windowOf(n, x.Dims[2:], nil)
	if err != nil {
		return err
	}
	dims := append(slices.Clone(x.Dims[:2]), at.positions(x.Dims[2:], n.integer("ceil_mode", 0) != 0)...)
	n.set(0, x.DType, dims)
	n.set(1, Int64, dims)
	return nil
}

func globalPoolShape(_ *facts, n *node) error {
	x := n.inputs[0]
	n.set(0, x.DType, append(slices.Clone(x.Dims[:2]), slices.Repeat([]int{1}, x.Rank()-2)...))
	return nil
}

func resizeShape(f *facts, n *node) error {
	x := n.inputs[0]
	axes := n.integers("axes")
	if axes == nil {
		for i := range x.Rank() {
			axes = append(axes, i)
		}
	}
	dims := slices.Clone(x.Dims)
	if n.has(3) {
		lengths, ok := f.integersOf(n.inputs[3])
		if !ok || len(lengths) != len(axes) || n.text("keep_aspect_ratio_policy", "stretch") != "stretch" {
			return unknown("the size")
		}
		for i, a := range axes {
			dims[axis(a, x.Rank())] = lengths[i]
		}
	} else {
		scales, ok := f.numbersOf(n.input(2))
		if !ok || len(scales) != len(axes) {
			return unknown("the scale")
		}
		for i, a := range axes {
			k := axis(a, x.Rank())
			dims[k] = int(float32(dims[k]) * float32(scales[i]))
		}
	}
	n.set(0, x.DType, dims)
	return nil
}

func layerNormShape(_ *facts, n *node) error {
	x := n.inputs[0]
	n.set(0, x.DType, x.Dims)
	dims := slices.Clone(x.Dims)
	for i := axis(n.integer("axis", -1), x.Rank()); i < len(dims); i++ {
		dims[i] = 1
	}
	n.set(1, Float, dims)
	n.set(2, Float, dims)
	return nil
}

// attentionShape covers the first output: that of q with the width of v.
func attentionShape(_ *facts, n *node) error {
	q, v := n.inputs[0], n.inputs[2]
	dims := slices.Clone(q.Dims)
	if q.Rank() == 4 {
		dims[3] = v.Dims[3]
	} else {
		dims[2] = v.Dims[2] / n.integer("kv_num_heads", 1) * n.integer("q_num_heads", 1)
	}
	n.set(0, q.DType, dims)
	for _, out := range n.outputs[1:] {
		if out.Name != "" {
			return unknown("a further output")
		}
	}
	return nil
}
