package operator

import (
	"fmt"

	"ddiff/internal/failure"
	"ddiff/internal/restore/axis"
	"ddiff/restore/onnx"
)

// ErrNoSVD: the program has no singular value decomposition of the operator.
var ErrNoSVD = failure.New(failure.Input, "the operator has no singular value decomposition")

// maxSVD is the largest side of an image whose operator is decomposed: the decomposition takes seconds.
const maxSVD = 1024

// SVD is the singular value decomposition A = U·S·Vᵀ of a linear operator, exact up to float32: V and U are orthogonal, S is
// diagonal.
//
// A spectrum has the shape of the images, [N, C, H, W]: the coefficient of each right singular vector, which U pairs with the
// left singular vector of the same place. Where A has fewer rows than columns, the places without a pair have the
// singular value zero, and Ut returns zeros there.
//
// Super-resolution and Gaussian blur are y = L·x·Rᵀ, so that U and V are products of the singular vectors along each axis, and
// the singular values products of those along each axis. A border reflected without repeating the edge makes L similar to a
// diagonal matrix by a cosine transform that is not orthogonal, so L itself is decomposed. The mask of an inpainting
// task is S, and U and V are the identity. Motion blur does not separate, and the cosine transform diagonalises only kernels that
// are symmetric along both axes: it has no decomposition here.
type SVD struct {
	// Vt returns the spectrum Vᵀ·x of images, V the images V·c of a spectrum, and Ut the spectrum Uᵀ·y of measurements.
	Vt, V, Ut func(g *onnx.Graph, x onnx.Value) onnx.Value
	// Values returns the singular values in a shape that broadcasts to spectra [N, C, H, W]; draws is the batch of
	// encoded draws, which are the values of a task with masks. A value counts as zero if one of its factors along the axes is
	// below least.
	Values func(g *onnx.Graph, draws onnx.Value, least float64) onnx.Value
	// Paired returns 1 for the places of a spectrum whose right singular vector has a left one, else 0, in the shape of Values. With a
	// mask, it is the mask: a dropped pixel measures nothing.
	Paired func(g *onnx.Graph, draws onnx.Value) onnx.Value
	// Diagonal: V is the identity, so that each pixel of an image has a coefficient of its own.
	Diagonal bool
	// rows and cols are the factors of a product, nil for a diagonal decomposition.
	rows, cols *axis.SVD
}

// diagonalSVD is the decomposition of y = s∘x, for an s of zeros and ones.
func diagonalSVD(s func(g *onnx.Graph, draws onnx.Value) onnx.Value) *SVD {
	same := func(_ *onnx.Graph, x onnx.Value) onnx.Value { return x }
	return &SVD{
		V: same, Vt: same, Ut: same, Paired: s, Diagonal: true,
		Values: func(g *onnx.Graph, draws onnx.Value, _ float64) onnx.Value { return s(g, draws) },
	}
}

// bandSVD decomposes y = rows·x·colsᵀ, and one matrix only for axes of one length. It returns ErrShape for images that are too large.
func bandSVD(rows, cols *axis.Band) (*SVD, error) {
	height, width := rows.Cols, cols.Cols
	if max(height, width) > maxSVD {
		return nil, fmt.Errorf("%w: %d×%d, the singular value decomposition of the operator has sides of at most %d; use a smaller size, or a method that needs no decomposition", ErrShape, width, height, maxSVD)
	}
	left, err := axis.Decompose(rows.Dense())
	if err != nil {
		return nil, err
	}
	right := left
	if height != width {
		if right, err = axis.Decompose(cols.Dense()); err != nil {
			return nil, err
		}
	}
	return separableSVD(left, right), nil
}

// separableSVD is the decomposition of products along the axes.
func separableSVD(rows, cols *axis.SVD) *SVD {
	product := func(factor func(*axis.SVD) *axis.Matrix) func(g *onnx.Graph, x onnx.Value) onnx.Value {
		return func(g *onnx.Graph, x onnx.Value) onnx.Value {
			return factor(cols).Along(g, factor(rows).Along(g, x, axis.Rows), axis.Cols)
		}
	}
	diagonal := func(g *onnx.Graph, number func(a *axis.SVD, i int) float64) onnx.Value {
		h, w := len(rows.S), len(cols.S)
		m := axis.Fill(h, w, func(i, j int) float64 { return number(rows, i) * number(cols, j) })
		return g.Const(m.Data, 1, 1, h, w)
	}
	return &SVD{
		rows: rows, cols: cols,
		V:  product(func(a *axis.SVD) *axis.Matrix { return a.V }),
		Vt: product(func(a *axis.SVD) *axis.Matrix { return a.V.Transposed() }),
		Ut: product(func(a *axis.SVD) *axis.Matrix { return a.Ut }),
		Values: func(g *onnx.Graph, _ onnx.Value, least float64) onnx.Value {
			return diagonal(g, func(a *axis.SVD, i int) float64 { return a.Value(i, least) })
		},
		Paired: func(g *onnx.Graph, _ onnx.Value) onnx.Value {
			return diagonal(g, func(a *axis.SVD, i int) float64 {
				if i < a.Ut.Cols {
					return 1
				}
				return 0
			})
		},
	}
}

// SVD returns the singular value decomposition of A. It returns ErrNoSVD for a task without one, see [Definition], and ErrShape
// for an image with a side above 1024.
func (o *Operator) SVD() (*SVD, error) {
	d, err := o.svd()
	if err != nil {
		return nil, fmt.Errorf("task %s: %w", o.Task, err)
	}
	return d, nil
}

// Weak returns the mean square of the coefficients of Uᵀ·y whose singular values are at most `most`, and their number, for one
// measurement y with a shape of images. Where A(x) is that small, y is noise. Both are 0 for a decomposition that is no product along the axes.
func (d *SVD) Weak(y []float32, most float64) (meanSquare float64, entries int) {
	if d.rows == nil {
		return 0, 0
	}
	plane := d.rows.Ut.Cols * d.cols.Ut.Cols
	for first := 0; first+plane <= len(y); first += plane {
		sum, n := axis.Weak(d.rows, d.cols, y[first:first+plane], most)
		meanSquare, entries = meanSquare+sum, entries+n
	}
	return meanSquare / max(1, float64(entries)), entries
}
