package axis

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// SVD is the singular value decomposition R = U·S·Vᵀ of the matrix [m, n], m ≤ n, that acts along one axis
// of images.
type SVD struct {
	// V is [n, n], its columns in the order of S. Ut is Uᵀ [n, m], its last n−m rows zero.
	V, Ut *Matrix
	// S holds the m singular values, in no order, and n−m zeros.
	S []float64
}

// Value returns singular value i, or 0 if it is below least.
func (a *SVD) Value(i int, least float64) float64 {
	if s := a.S[i]; s >= least {
		return s
	}
	return 0
}

// Decompose computes the decomposition in float64. R commutes with the reflection of the axis, so it maps even vectors to
// even ones and odd vectors to odd ones: the decompositions of the two blocks take a quarter of the time.
func Decompose(r *Matrix) (*SVD, error) {
	m, n := r.Rows, r.Cols
	left, right := parities(m), parities(n)
	var b mat.Dense
	b.Product(left.T(), dense(r), right)

	out := &SVD{newMatrix(n, n), newMatrix(n, m), make([]float64, n)}
	free := m // the next column of V without a singular value
	for _, block := range [][4]int{{0, even(m), 0, even(n)}, {even(m), m, even(n), n}} {
		top, bottom, first, last := block[0], block[1], block[2], block[3]
		if first == last {
			continue
		}
		var u, v, columns mat.Dense
		if bottom > top {
			var svd mat.SVD
			if !svd.Factorize(b.Slice(top, bottom, first, last), mat.SVDFull) {
				return nil, fmt.Errorf("the singular value decomposition of %d×%d elements does not converge", bottom-top, last-first)
			}
			svd.UTo(&u)
			svd.VTo(&v)
			columns.Mul(left.Slice(0, m, top, bottom), &u)
			for k, s := range svd.Values(nil) {
				out.S[top+k] = s
				for i := range m {
					out.Ut.Data[(top+k)*m+i] = float32(columns.At(i, k))
				}
			}
			columns.Reset()
		} else {
			v.CloneFrom(identity(last - first))
		}
		columns.Mul(right.Slice(0, n, first, last), &v)
		for k := range last - first {
			at := top + k
			if k >= bottom-top {
				at, free = free, free+1
			}
			for i := range n {
				out.V.Data[i*n+at] = float32(columns.At(i, k))
			}
		}
	}
	return out, nil
}

// Weak returns the sum of the squares of the coefficients of rows.Uᵀ·y·cols.U whose singular values have a product of at most `most`, and
// their number. y is a plane of as many rows and columns as the two matrices have rows.
func Weak(rows, cols *SVD, y []float32, most float64) (sum float64, entries int) {
	h, w := rows.Ut.Cols, cols.Ut.Cols
	var c mat.Dense
	c.Product(dense(rows.Ut), dense(&Matrix{h, w, y}), dense(cols.Ut).T())
	for i := range h {
		for j := range w {
			if rows.S[i]*cols.S[j] <= most {
				sum, entries = sum+c.At(i, j)*c.At(i, j), entries+1
			}
		}
	}
	return sum, entries
}

// even is the dimension of the even vectors of length n.
func even(n int) int { return (n + 1) / 2 }

// parities is an orthonormal basis of the even vectors of length n, and then of the odd ones, as columns.
func parities(n int) *mat.Dense {
	p := mat.NewDense(n, n, nil)
	for i := range n / 2 {
		for _, k := range []int{i, even(n) + i} {
			p.Set(i, k, math.Sqrt(0.5))
			p.Set(n-1-i, k, math.Sqrt(0.5))
		}
		p.Set(n-1-i, even(n)+i, -math.Sqrt(0.5))
	}
	if n%2 == 1 {
		p.Set(n/2, n/2, 1)
	}
	return p
}

func identity(n int) mat.Matrix {
	ones := make([]float64, n)
	for i := range ones {
		ones[i] = 1
	}
	return mat.NewDiagDense(n, ones)
}

// dense returns a matrix in gonum's form.
func dense(m *Matrix) *mat.Dense {
	data := make([]float64, len(m.Data))
	for i, v := range m.Data {
		data[i] = float64(v)
	}
	return mat.NewDense(m.Rows, m.Cols, data)
}
