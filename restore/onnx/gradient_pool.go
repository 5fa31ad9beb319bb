package onnx

import (
	"maps"
	"slices"

	"ddiff/internal/restore/onnx/infer"
)

// averagePoolRule builds the gradient of an average pooling. Along each dimension it is a linear map, also with the
// borders' smaller counts.
func averagePoolRule(g *Graph, n *infer.Node, _ int, dy Value) (Value, error) {
	x := n.Inputs[0]
	w, err := infer.WindowOf(n, x.Dims[2:], nil)
	if err != nil {
		return Value{}, err
	}
	if blocks(w, x.Dims[2:]) {
		share := g.scaled(dy, 1/float64(infer.Size(w.Kernel)))
		return g.repeatBlocks(share, w.Kernel), nil
	}
	maps := make([]*axisMap, x.Rank())
	for i := range w.Kernel {
		maps[2+i] = averages(w, i, x.Dims[2+i], dy.Dims[2+i], n.Integer("count_include_pad", 0) != 0)
	}
	return g.applyTransposed(dy, maps), nil
}

// blocks reports whether the windows are the blocks of a grid that covers the input.
func blocks(w infer.Window, in []int) bool {
	for i, side := range in {
		if w.Kernel[i] != w.Stride[i] || w.Dilation[i] != 1 || w.Before[i] != 0 || w.After[i] != 0 || side%w.Kernel[i] != 0 {
			return false
		}
	}
	return len(in) <= 3
}

// averages returns the means over windows along spatial dimension i, of all their positions up to the end of the padding, or of those
// inside the input.
func averages(w infer.Window, i, in, out int, padded bool) *axisMap {
	m := &axisMap{in: in, rows: make([][]tap, out)}
	for o := range m.rows {
		start, count := o*w.Stride[i]-w.Before[i], 0
		for k := range w.Kernel[i] {
			at := start + k*w.Dilation[i]
			inside := at >= 0 && at < in
			if inside {
				m.rows[o] = append(m.rows[o], tap{input: at})
			}
			// With ceil_mode, a window may end behind the padding: those positions do not count.
			if inside || padded && at < in+w.After[i] {
				count++
			}
		}
		for k := range m.rows[o] {
			m.rows[o][k].weight = 1 / float32(count)
		}
	}
	return m
}

func globalAveragePoolRule(g *Graph, n *infer.Node, _ int, dy Value) (Value, error) {
	x := n.Inputs[0]
	share := g.scaled(dy, 1/float64(infer.Size(x.Dims[2:])))
	return g.Expand(share, x.Dims...), nil
}

// maxPoolRule adds dy at the position of each maximum; the first one of equal values, as the runtime finds it.
func maxPoolRule(g *Graph, n *infer.Node, _ int, dy Value) (Value, error) {
	x := n.Inputs[0]
	if g.opset < scatterAdd {
		return Value{}, n.Refuse("before operator set %d", scatterAdd)
	}
	attrs := maps.Clone(n.Attrs)
	delete(attrs, "storage_order")
	index := Value{Name: g.fresh("MaxPool"), DType: Int64, Dims: dy.Dims}
	g.emit("MaxPool", []string{x.Name}, []string{g.fresh("MaxPool"), index.Name}, infer.EncodeAttributes(attrs)...)
	zeros := g.zeros(dy.DType, []int{x.Size()})
	flat := g.Apply("ScatterElements", dy.DType, zeros.Dims, map[string]any{"axis": 0, "reduction": "add"},
		zeros, g.Reshape(index, index.Size()), g.Reshape(dy, dy.Size()))
	return g.Reshape(flat, slices.Clone(x.Dims)...), nil
}
