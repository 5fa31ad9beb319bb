package operator

import "ddiff/restore/onnx"

// matrix is a small dense constant, stored row by row.
type matrix struct {
	rows, cols int
	data       []float32
}

func newMatrix(rows, cols int) *matrix {
	return &matrix{rows, cols, make([]float32, rows*cols)}
}

// fill sets every element from its row and column.
func fill(rows, cols int, f func(i, j int) float64) *matrix {
	m := newMatrix(rows, cols)
	for i := range rows {
		for j := range cols {
			m.data[i*cols+j] = float32(f(i, j))
		}
	}
	return m
}

func (m *matrix) value(g *onnx.Graph) onnx.Value { return g.Const(m.data, m.rows, m.cols) }

func (m *matrix) transposed() *matrix {
	return fill(m.cols, m.rows, func(i, j int) float64 { return float64(m.data[j*m.cols+i]) })
}

// times is the matrix product, accumulated in float64.
func (m *matrix) times(b *matrix) *matrix {
	out := newMatrix(m.rows, b.cols)
	sum := make([]float64, b.cols)
	for i := range m.rows {
		clear(sum)
		for k := range m.cols {
			a := float64(m.data[i*m.cols+k])
			if a == 0 {
				continue
			}
			for j := range b.cols {
				sum[j] += a * float64(b.data[k*b.cols+j])
			}
		}
		for j, s := range sum {
			out.data[i*b.cols+j] = float32(s)
		}
	}
	return out
}
