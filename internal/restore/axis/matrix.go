package axis

import (
	"ddiff/internal/restore/raster"
	"ddiff/restore/onnx"
)

// Matrix is a small dense constant, stored row by row.
type Matrix struct {
	Rows, Cols int
	Data       []float32
}

func newMatrix(rows, cols int) *Matrix {
	return &Matrix{rows, cols, make([]float32, rows*cols)}
}

// Fill returns a matrix. f sets every element from its row and column.
func Fill(rows, cols int, f func(i, j int) float64) *Matrix {
	m := newMatrix(rows, cols)
	for i := range rows {
		for j := range cols {
			m.Data[i*cols+j] = float32(f(i, j))
		}
	}
	return m
}

// Value adds the matrix to a graph.
func (m *Matrix) Value(g *onnx.Graph) onnx.Value { return g.Const(m.Data, m.Rows, m.Cols) }

// Transposed returns the transposed matrix.
func (m *Matrix) Transposed() *Matrix {
	return Fill(m.Cols, m.Rows, func(i, j int) float64 { return float64(m.Data[j*m.Cols+i]) })
}

// Times is the matrix product, accumulated in float64.
func (m *Matrix) Times(b *Matrix) *Matrix {
	return product(m.Rows, b, func(i int) (first int, weights []float32) { return 0, m.Data[i*m.Cols : (i+1)*m.Cols] })
}

// product multiplies rows of weights, which begin at a column, by a matrix.
func product(rows int, b *Matrix, row func(i int) (first int, weights []float32)) *Matrix {
	out := newMatrix(rows, b.Cols)
	sum := make([]float64, b.Cols)
	for i := range rows {
		clear(sum)
		first, weights := row(i)
		for k, w := range weights {
			if w == 0 {
				continue
			}
			raster.AddWeighted(sum, float64(w), b.Data[(first+k)*b.Cols:][:b.Cols])
		}
		for j, s := range sum {
			out.Data[i*b.Cols+j] = float32(s)
		}
	}
	return out
}

// Along multiplies an axis of a batch of images by the matrix: m·v for rows, v·mᵀ for columns.
func (m *Matrix) Along(g *onnx.Graph, v onnx.Value, axis int) onnx.Value {
	if axis == Rows {
		return g.MatMul(m.Value(g), v)
	}
	return g.MatMul(v, m.Transposed().Value(g))
}
