package operator

import (
	"slices"

	"ddiff/restore/onnx"
)

// maxDenseSide is the longest side of images whose operators are products with matrices of the size of an axis. Longer ones use a [band], whose
// memory grows with the side and not with its square.
const maxDenseSide = 1024

// axisMap is a linear map along one axis of images.
type axisMap interface {
	// apply maps an axis of v.
	apply(g *onnx.Graph, v onnx.Value, axis int) onnx.Value
	// length is the length of the axis after the map.
	length() int
}

func (m *matrix) apply(g *onnx.Graph, v onnx.Value, axis int) onnx.Value { return along(g, m, v, axis) }

func (m *matrix) length() int { return m.rows }

// band is a matrix whose rows differ from zero in a few neighbouring columns.
type band struct {
	rows, cols int
	first      []int       // the first column of each row
	weights    [][]float32 // from there on
}

// newBand sums the weights that visit adds to the columns of each row.
func newBand(rows, cols int, visit func(row int, add func(col int, w float32))) *band {
	b := &band{rows: rows, cols: cols, first: make([]int, rows), weights: make([][]float32, rows)}
	sum := make([]float32, cols)
	for i := range rows {
		low, high := cols, -1
		visit(i, func(j int, w float32) {
			if w != 0 {
				sum[j] += w
				low, high = min(low, j), max(high, j)
			}
		})
		if low > high {
			low, high = 0, 0
		}
		b.first[i], b.weights[i] = low, slices.Clone(sum[low:high+1])
		clear(sum[low : high+1])
	}
	return b
}

// transposed returns the transposed matrix.
func (b *band) transposed() *band {
	type entry struct {
		row int
		w   float32
	}
	columns := make([][]entry, b.cols)
	for i, weights := range b.weights {
		for k, w := range weights {
			columns[b.first[i]+k] = append(columns[b.first[i]+k], entry{i, w})
		}
	}
	return newBand(b.cols, b.rows, func(row int, add func(int, float32)) {
		for _, e := range columns[row] {
			add(e.row, e.w)
		}
	})
}

// The number of rows of a block is the width of the band, within these limits: narrower blocks make the products small, wider ones multiply with
// more zeros.
const (
	minBlock = 64
	maxBlock = 512
)

func (b *band) length() int { return b.rows }

// apply multiplies blocks of rows with the columns that they need. Equal blocks share one constant.
func (b *band) apply(g *onnx.Graph, v onnx.Value, axis int) onnx.Value {
	widest := 0
	for _, w := range b.weights {
		widest = max(widest, len(w))
	}
	size := min(max(widest, minBlock), maxBlock)
	var parts []onnx.Value
	for top := 0; top < b.rows; top += size {
		bottom := min(top+size, b.rows)
		low, high := b.cols, 0
		for i := top; i < bottom; i++ {
			low, high = min(low, b.first[i]), max(high, b.first[i]+len(b.weights[i]))
		}
		m := newMatrix(bottom-top, high-low)
		for i := top; i < bottom; i++ {
			copy(m.data[(i-top)*m.cols+b.first[i]-low:], b.weights[i])
		}
		parts = append(parts, along(g, m, g.Slice(v, axis, low, high), axis))
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return g.Concat(axis, parts...)
}

// separable is y = L·x·Rᵀ for each channel.
type separable struct{ rows, cols axisMap }

// newSeparable returns the map of bands, as matrices for images whose sides are at most maxDenseSide.
func newSeparable(rows, cols *band) separable {
	if max(rows.cols, cols.cols) <= maxDenseSide {
		return separable{rows.dense(), cols.dense()}
	}
	return separable{rows, cols}
}

func (b *band) dense() *matrix {
	m := newMatrix(b.rows, b.cols)
	for i, w := range b.weights {
		copy(m.data[i*b.cols+b.first[i]:], w)
	}
	return m
}

func (s separable) forward(g *onnx.Graph, x, _ onnx.Value) onnx.Value {
	return s.cols.apply(g, s.rows.apply(g, x, rowAxis), colAxis)
}

// adjoint is Lᵀ·w·R. It is nil for matrices, whose gradient is that of the graph.
func (s separable) adjoint() func(g *onnx.Graph, w, _ onnx.Value) onnx.Value {
	rows, ok := s.rows.(*band)
	cols, too := s.cols.(*band)
	if !ok || !too {
		return nil
	}
	t := separable{rows.transposed(), cols.transposed()}
	return t.forward
}
