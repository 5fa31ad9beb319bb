package infer

import "slices"

// networkShapes are the inferences of convolutions, pooling, resizing and normalisations with several outputs.
var networkShapes = map[string]inference{
	"Conv": convShape, "ConvTranspose": convTransposeShape, "MaxPool": poolShape, "AveragePool": poolShape,
	"GlobalAveragePool": globalPoolShape, "GlobalMaxPool": globalPoolShape, "Resize": resizeShape, "LayerNormalization": layerNormShape,
}

// positions returns the number of positions of the window in each spatial dimension.
func (w Window) positions(spatial []int, ceil bool) []int {
	out := make([]int, len(spatial))
	for i, length := range spatial {
		free := length + w.Before[i] + w.After[i] - w.Reach(i)
		out[i] = free/w.Stride[i] + 1
		if ceil && free%w.Stride[i] != 0 && out[i]*w.Stride[i] < length+w.Before[i] {
			out[i]++ // a last window that begins in the image
		}
	}
	return out
}

func convShape(_ *Facts, n *Node) error {
	x, w := n.Inputs[0], n.Inputs[1]
	if x.Rank() != w.Rank() || x.Dims[1] != w.Dims[1]*n.Integer("group", 1) {
		return misfit(n)
	}
	at, err := WindowOf(n, x.Dims[2:], w.Dims[2:])
	if err != nil {
		return err
	}
	return n.returns(x.DType, append([]int{x.Dims[0], w.Dims[0]}, at.positions(x.Dims[2:], false)...))
}

func convTransposeShape(_ *Facts, n *Node) error {
	x, w := n.Inputs[0], n.Inputs[1]
	if x.Rank() != w.Rank() || x.Dims[1] != w.Dims[0] {
		return misfit(n)
	}
	dims := []int{x.Dims[0], w.Dims[1] * n.Integer("group", 1)}
	if given := n.Integers("output_shape"); given != nil {
		return n.returns(x.DType, append(dims, given[len(given)-(x.Rank()-2):]...))
	}
	g, err := windowAttributes(n, x.Rank()-2, w.Dims[2:])
	if err != nil {
		return err
	}
	extra := n.Integers("output_padding")
	same := (n.Text("auto_pad", "NOTSET") == "SAME_UPPER" || n.Text("auto_pad", "NOTSET") == "SAME_LOWER")
	for i, length := range x.Dims[2:] {
		d := g.Stride[i]*(length-1) + g.Reach(i) - g.Before[i] - g.After[i]
		if same {
			d = g.Stride[i] * length
		}
		if extra != nil && !same {
			d += extra[i]
		}
		dims = append(dims, d)
	}
	return n.returns(x.DType, dims)
}

func poolShape(_ *Facts, n *Node) error {
	x := n.Inputs[0]
	at, err := WindowOf(n, x.Dims[2:], nil)
	if err != nil {
		return err
	}
	dims := append(slices.Clone(x.Dims[:2]), at.positions(x.Dims[2:], n.Integer("ceil_mode", 0) != 0)...)
	n.set(0, x.DType, dims)
	n.set(1, Int64, dims)
	return nil
}

func globalPoolShape(_ *Facts, n *Node) error {
	x := n.Inputs[0]
	return n.returns(x.DType, append(slices.Clone(x.Dims[:2]), slices.Repeat([]int{1}, x.Rank()-2)...))
}

func resizeShape(f *Facts, n *Node) error {
	x := n.Inputs[0]
	axes := n.Integers("axes")
	if axes == nil {
		for i := range x.Rank() {
			axes = append(axes, i)
		}
	}
	dims := slices.Clone(x.Dims)
	if n.Has(3) {
		lengths, ok := f.IntegersOf(n.Inputs[3])
		if !ok || len(lengths) != len(axes) || n.Text("keep_aspect_ratio_policy", "stretch") != "stretch" {
			return unknown("the size")
		}
		for i, a := range axes {
			dims[Axis(a, x.Rank())] = lengths[i]
		}
	} else {
		scales, ok := f.NumbersOf(n.Input(2))
		if !ok || len(scales) != len(axes) {
			return unknown("the scale")
		}
		for i, a := range axes {
			k := Axis(a, x.Rank())
			dims[k] = int(float32(dims[k]) * float32(scales[i]))
		}
	}
	return n.returns(x.DType, dims)
}

func layerNormShape(_ *Facts, n *Node) error {
	x := n.Inputs[0]
	n.set(0, x.DType, x.Dims)
	dims := slices.Clone(x.Dims)
	for i := Axis(n.Integer("axis", -1), x.Rank()); i < len(dims); i++ {
		dims[i] = 1
	}
	n.set(1, Float, dims)
	n.set(2, Float, dims)
	return nil
}
