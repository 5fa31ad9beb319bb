package axis

import (
	"slices"

	"ddiff/restore/onnx"
)

// MaxDense is the longest side of images, in pixels, whose maps are products with matrices of the size of an axis. Longer ones use a [band], whose
// memory grows with the side and not with its square.
const MaxDense = 1024

// along is a linear map along one axis of images.
type along interface {
	Along(g *onnx.Graph, v onnx.Value, axis int) onnx.Value
}

// Band is a matrix whose rows differ from zero in a few neighbouring columns.
type Band struct {
	Rows, Cols int
	first      []int       // the first column of each row
	weights    [][]float32 // from there on
}

// NewBand sums the weights that visit adds to the columns of each row.
func NewBand(rows, cols int, visit func(row int, add func(col int, w float32))) *Band {
	b := &Band{Rows: rows, Cols: cols, first: make([]int, rows), weights: make([][]float32, rows)}
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

// Transposed returns the transposed matrix.
func (b *Band) Transposed() *Band {
	type entry struct {
		row int
		w   float32
	}
	columns := make([][]entry, b.Cols)
	for i, weights := range b.weights {
		for k, w := range weights {
			columns[b.first[i]+k] = append(columns[b.first[i]+k], entry{i, w})
		}
	}
	return NewBand(b.Cols, b.Rows, func(row int, add func(int, float32)) {
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

// Along multiplies an axis of a batch of images by the matrix: blocks of rows with the columns that they need. Equal blocks share one constant.
func (b *Band) Along(g *onnx.Graph, v onnx.Value, axis int) onnx.Value {
	widest := 0
	for _, w := range b.weights {
		widest = max(widest, len(w))
	}
	size := min(max(widest, minBlock), maxBlock)
	var parts []onnx.Value
	for top := 0; top < b.Rows; top += size {
		bottom := min(top+size, b.Rows)
		low, high := b.Cols, 0
		for i := top; i < bottom; i++ {
			low, high = min(low, b.first[i]), max(high, b.first[i]+len(b.weights[i]))
		}
		m := newMatrix(bottom-top, high-low)
		for i := top; i < bottom; i++ {
			copy(m.Data[(i-top)*m.Cols+b.first[i]-low:], b.weights[i])
		}
		parts = append(parts, m.Along(g, g.Slice(v, axis, low, high), axis))
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return g.Concat(axis, parts...)
}

// Separable is y = L·x·Rᵀ for each channel.
type Separable struct{ rows, cols along }

// NewSeparable returns the map of bands, as matrices for images whose sides are at most MaxDense.
func NewSeparable(rows, cols *Band) Separable {
	if max(rows.Cols, cols.Cols) <= MaxDense {
		return Separable{rows.Dense(), cols.Dense()}
	}
	return Separable{rows, cols}
}

// Dense returns the matrix with its zeros.
func (b *Band) Dense() *Matrix {
	m := newMatrix(b.Rows, b.Cols)
	for i, w := range b.weights {
		copy(m.Data[i*b.Cols+b.first[i]:], w)
	}
	return m
}

// Times is the product with a matrix, accumulated in float64.
func (b *Band) Times(m *Matrix) *Matrix {
	return product(b.Rows, m, func(i int) (first int, weights []float32) { return b.first[i], b.weights[i] })
}

// Forward builds L·x·Rᵀ.
func (s Separable) Forward(g *onnx.Graph, x, _ onnx.Value) onnx.Value {
	return s.cols.Along(g, s.rows.Along(g, x, Rows), Cols)
}

// Adjoint is Lᵀ·w·R. It is nil for matrices, whose gradient is that of the graph.
func (s Separable) Adjoint() func(g *onnx.Graph, w, _ onnx.Value) onnx.Value {
	rows, ok := s.rows.(*Band)
	cols, too := s.cols.(*Band)
	if !ok || !too {
		return nil
	}
	t := Separable{rows.Transposed(), cols.Transposed()}
	return t.Forward
}
