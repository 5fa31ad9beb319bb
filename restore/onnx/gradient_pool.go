package onnx

import (
	"maps"
	"slices"

	"ddiff/restore/onnx/infer"
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
	return g.applyTransposed(dy, windowMaps(w, x.Dims, dy.Dims, func(i, start, inside int) float32 {
		if n.Integer("count_include_pad", 0) == 0 {
			return 1 / float32(inside)
		}
		// With ceil_mode, a window may end behind the padding: those positions do not count.
		count := 0
		for k := range w.Kernel[i] {
			if start+k*w.Dilation[i] < x.Dims[2+i]+w.After[i] {
				count++
			}
		}
		return 1 / float32(count)
	})), nil
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

// windowMaps returns the sums over windows along each dimension of in, with a weight that depends on dimension, first position and
// number of positions inside the input.
func windowMaps(w infer.Window, in, out []int, weight func(i, start, inside int) float32) []*axisMap {
	maps := make([]*axisMap, len(in))
	for i := range w.Kernel {
		m := &axisMap{in: in[2+i], rows: make([][]tap, out[2+i])}
		for o := range m.rows {
			start := o*w.Stride[i] - w.Before[i]
			for k := range w.Kernel[i] {
				if at := start + k*w.Dilation[i]; at >= 0 && at < m.in {
					m.rows[o] = append(m.rows[o], tap{input: at})
				}
			}
			share := weight(i, start, len(m.rows[o]))
			for k := range m.rows[o] {
				m.rows[o][k].weight = share
			}
		}
		maps[2+i] = m
	}
	return maps
}

func globalAveragePoolRule(g *Graph, n *infer.Node, _ int, dy Value) (Value, error) {
	x := n.Inputs[0]
	share := g.scaled(dy, 1/float64(infer.Size(x.Dims[2:])))
	return g.Expand(share, x.Dims...), nil
}

// lpPoolRule builds the gradient of the pooling with the Euclidean norm, and 0 where the norm is 0.
func lpPoolRule(g *Graph, n *infer.Node, _ int, dy Value) (Value, error) {
	x := n.Inputs[0]
	if p := n.Integer("p", 2); p != 2 {
		return Value{}, n.Refuse("p %d", p)
	}
	w, err := infer.WindowOf(n, x.Dims[2:], nil)
	if err != nil {
		return Value{}, err
	}
	share := g.Div(dy, g.Max(n.Outputs[0], g.number(dy.DType, tiny)))
	sum := g.applyTransposed(share, windowMaps(w, x.Dims, dy.Dims, func(_, _, _ int) float32 { return 1 }))
	return g.Mul(x, sum), nil
}

// maxPoolRule adds dy at the position of each maximum; the first one of equal values, as the runtime finds it.
func maxPoolRule(g *Graph, n *infer.Node, _ int, dy Value) (Value, error) {
	x := n.Inputs[0]
	const scatterAdd = 16 // the first operator set with ScatterElements of sums
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
