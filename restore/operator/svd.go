package operator

import (
	"errors"
	"fmt"

	"ddiff/restore/onnx"
)

// ErrNoSVD: the program has no singular value decomposition of the operator.
var ErrNoSVD = errors.New("the operator has no singular value decomposition")

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
	rows, cols *axisSVD // nil: the encoded draws are S
}

// newSVD decomposes y = rows·x·colsᵀ.
func newSVD(rows, cols *matrix) (*SVD, error) {
	if err := fitsSVD(rows.cols, cols.cols); err != nil {
		return nil, err
	}
	left, err := decompose(rows)
	if err != nil {
		return nil, err
	}
	if rows.cols == cols.cols { // one matrix for one length
		return &SVD{left, left}, nil
	}
	right, err := decompose(cols)
	return &SVD{left, right}, err
}

// fitsSVD returns ErrShape for images that are too large.
func fitsSVD(height, width int) error {
	if max(height, width) > maxSVD {
		return fmt.Errorf("%w: %d×%d, the singular value decomposition of the operator has sides of at most %d", ErrShape, width, height, maxSVD)
	}
	return nil
}

// bandSVD is newSVD of bands.
func bandSVD(rows, cols *band) (*SVD, error) {
	if err := fitsSVD(rows.cols, cols.cols); err != nil {
		return nil, err
	}
	return newSVD(rows.dense(), cols.dense())
}

// HasSVD reports whether the operators of a task have a singular value decomposition.
func (s Set) HasSVD(task string) bool {
	d, err := s.find(task)
	return err == nil && d.SVD != nil
}

// SVD returns the singular value decomposition of A. It returns ErrNoSVD for a task without one, see [Set.HasSVD], and ErrShape
// for an image with a side above 1024.
func (o *Operator) SVD() (*SVD, error) {
	d, err := o.svd()
	if err != nil {
		return nil, fmt.Errorf("task %s: %w", o.Task, err)
	}
	return d, nil
}

// Vt returns the spectrum Vᵀ·x of images.
func (d *SVD) Vt(g *onnx.Graph, x onnx.Value) onnx.Value {
	return d.apply(g, x, func(a *axisSVD) *matrix { return a.v.transposed() })
}

// V returns the images V·c of a spectrum.
func (d *SVD) V(g *onnx.Graph, c onnx.Value) onnx.Value {
	return d.apply(g, c, func(a *axisSVD) *matrix { return a.v })
}

// Ut returns the spectrum Uᵀ·y of measurements.
func (d *SVD) Ut(g *onnx.Graph, y onnx.Value) onnx.Value {
	return d.apply(g, y, func(a *axisSVD) *matrix { return a.ut })
}

// U returns the measurements U·c of a spectrum.
func (d *SVD) U(g *onnx.Graph, c onnx.Value) onnx.Value {
	return d.apply(g, c, func(a *axisSVD) *matrix { return a.ut.transposed() })
}

// apply multiplies with a matrix along each axis.
func (d *SVD) apply(g *onnx.Graph, x onnx.Value, factor func(*axisSVD) *matrix) onnx.Value {
	if d.rows == nil {
		return x
	}
	return along(g, factor(d.cols), along(g, factor(d.rows), x, rowAxis), colAxis)
}

// Values returns the singular values, shape [1, 1, H, W], or [N, 1, H, W] for a task with masks; draws is the batch of
// encoded draws. A value counts as zero if one of its factors along the axes is below least.
func (d *SVD) Values(g *onnx.Graph, draws onnx.Value, least float64) onnx.Value {
	return d.diagonal(g, draws, func(a *axisSVD, i int) float64 { return a.value(i, least) })
}

// Paired returns 1 for the places of a spectrum whose right singular vector has a left one, else 0, in the shape of Values.
func (d *SVD) Paired(g *onnx.Graph, draws onnx.Value) onnx.Value {
	return d.diagonal(g, draws, func(a *axisSVD, i int) float64 {
		if i < a.ut.cols {
			return 1
		}
		return 0
	})
}

// diagonal returns the products of numbers along the axes, and the masks of a task that has them.
func (d *SVD) diagonal(g *onnx.Graph, draws onnx.Value, number func(a *axisSVD, i int) float64) onnx.Value {
	if d.rows == nil {
		return draws
	}
	h, w := len(d.rows.s), len(d.cols.s)
	m := fill(h, w, func(i, j int) float64 { return number(d.rows, i) * number(d.cols, j) })
	return g.Const(m.data, 1, 1, h, w)
}
