package onnx

import (
	"slices"

	"ddiff/internal/restore/onnx/infer"
)

// tap is the weight of an input in an output.
type tap struct {
	input  int
	weight float32
}

// axisMap is a linear map along one dimension: the taps of each output.
type axisMap struct {
	in   int
	rows [][]tap
}

// factor returns f if the map repeats each input f times, else 0.
func (m *axisMap) factor() int {
	f := len(m.rows) / m.in
	if f*m.in != len(m.rows) {
		return 0
	}
	for o, row := range m.rows {
		for _, t := range row {
			if t.weight != 0 && (t.input != o/f || t.weight != 1) {
				return 0
			}
		}
	}
	return f
}

// matrix returns the map as a constant of shape [outputs, inputs].
func (m *axisMap) matrix(g *Graph, t DType) Value {
	data := make([]float32, len(m.rows)*m.in)
	for o, row := range m.rows {
		for _, t := range row {
			data[o*m.in+t.input] += t.weight
		}
	}
	c := g.Const(data, len(m.rows), m.in)
	if t != Float {
		return g.Cast(c, t)
	}
	return c
}

// applyTransposed applies the transposes of linear maps, one per dimension of dy; nil is the identity. Sums over blocks
// are an average pooling; other maps are multiplications by matrices.
func (g *Graph) applyTransposed(dy Value, maps []*axisMap) Value {
	if factors := blockFactors(maps); factors != nil {
		return g.sumBlocks(dy, factors)
	}
	for axis, m := range slices.Backward(maps) {
		if m == nil || m.factor() == 1 {
			continue
		}
		dims := slices.Clone(dy.Dims)
		dims[axis] = m.in
		matrix := m.matrix(g, dy.DType)
		if axis == dy.Rank()-1 {
			rows := g.Reshape(dy, dy.Size()/len(m.rows), len(m.rows))
			dy = g.Reshape(g.MatMul(rows, matrix), dims...)
			continue
		}
		stacked := g.Reshape(dy, infer.Size(dims[:axis]), len(m.rows), infer.Size(dims[axis+1:]))
		dy = g.Reshape(g.MatMul(g.Transpose(matrix, 1, 0), stacked), dims...)
	}
	return dy
}

// blockFactors returns the factors of maps that repeat pixels in the dimensions behind the channels, else nil.
func blockFactors(maps []*axisMap) []int {
	if len(maps) < 3 || len(maps) > 5 {
		return nil
	}
	factors := slices.Repeat([]int{1}, len(maps))
	for i, m := range maps {
		if m != nil {
			factors[i] = m.factor()
		}
		if factors[i] == 0 || i < 2 && factors[i] != 1 {
			return nil
		}
	}
	return factors[2:]
}

// sumBlocks sums dy over blocks of pixels.
func (g *Graph) sumBlocks(dy Value, factors []int) Value {
	if infer.Size(factors) == 1 {
		return dy
	}
	mean := g.op("AveragePool", map[string]any{"kernel_shape": factors, "strides": factors}, dy)
	return g.scaled(mean, float64(infer.Size(factors)))
}

// repeatBlocks repeats each pixel over a block.
func (g *Graph) repeatBlocks(v Value, factors []int) Value {
	scales := []float32{1, 1}
	for _, f := range factors {
		scales = append(scales, float32(f))
	}
	attrs := map[string]any{"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
	return g.op("Resize", attrs, v, Value{}, g.Const(scales, len(scales)))
}
