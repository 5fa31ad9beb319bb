package method

import (
	"errors"
	"slices"

	"ddiff/restore/onnx"
	"ddiff/restore/operator"
)

// SVD is the operator's singular value decomposition A = U·S·Vᵀ in the graph of a step, see [operator.SVD]. Each product with
// U or V counts as an operator call.
type SVD struct {
	b *Builder
	d *operator.SVD
}

// SVD returns the decomposition. For a task without one, the building of the step ends with [operator.ErrNoSVD].
func (b *Builder) SVD() SVD { return SVD{b, built(b.run.Operator.SVD())} }

// decomposed returns the decomposition, if the task has one and the images are not too large for it.
func (b *Builder) decomposed() (d SVD, ok bool) {
	of, err := b.run.Operator.SVD()
	if errors.Is(err, operator.ErrNoSVD) || errors.Is(err, operator.ErrShape) {
		return d, false
	}
	return SVD{b, built(of, err)}, true
}

// Vt returns the spectrum Vᵀ·x of images.
func (s SVD) Vt(x onnx.Value) onnx.Value { return s.counted(x, s.d.Vt(s.b.Graph, x)) }

// V returns the images V·c of a spectrum.
func (s SVD) V(c onnx.Value) onnx.Value { return s.counted(c, s.d.V(s.b.Graph, c)) }

// Ut returns the spectrum Uᵀ·y of measurements.
func (s SVD) Ut(y onnx.Value) onnx.Value { return s.counted(y, s.d.Ut(s.b.Graph, y)) }

func (s SVD) counted(in, out onnx.Value) onnx.Value {
	s.b.applied(in, out)
	return out
}

// Values returns the singular values, those with a factor below least along an axis as zero, in a shape that broadcasts to
// spectra.
func (s SVD) Values(least float64) onnx.Value { return s.d.Values(s.b.Graph, s.b.in.mask, least) }

// Paired returns 1 for the coefficients on which y depends, else 0, in the shape of Values.
func (s SVD) Paired() onnx.Value { return s.d.Paired(s.b.Graph, s.b.in.mask) }

// Inverse returns the reciprocals of values, and 0 for 0.
func (s SVD) Inverse(values onnx.Value) onnx.Value {
	const tiny = 1e-20
	return s.b.Div(s.b.larger(values, s.b.Scalar(0)), s.b.Max(values, s.b.Scalar(tiny)))
}

// larger is 1 where a > c, else 0.
func (b *Builder) larger(a, c onnx.Value) onnx.Value {
	dims := a.Dims
	if c.Size() > a.Size() {
		dims = c.Dims
	}
	return b.Cast(b.Apply("Greater", onnx.Bool, dims, nil, a, c), onnx.Float)
}

// PseudoInverse returns A⁺·y, in which singular values with a factor below least along an axis count as zero.
func (s SVD) PseudoInverse(least float64) onnx.Value {
	return s.V(s.b.Mul(s.Ut(s.b.in.measurement), s.Inverse(s.Values(least))))
}

// Rough returns an image made from y without the prior: y itself where it has the shape of images, with zeros at unobserved
// pixels; else A⁺·y, by conjugate gradients where the images are too large for the decomposition, or zeros for an operator without one.
func (b *Builder) Rough() onnx.Value {
	op := b.run.Operator
	dims := op.Image.Dims(b.in.measurement.Dims[0])
	if slices.Equal(b.in.measurement.Dims, dims) {
		return op.Weighted(b.Graph, b.in.measurement, b.in.mask)
	}
	if d, ok := b.decomposed(); ok {
		return d.PseudoInverse(0)
	}
	zero := b.Const(make([]float32, op.Image.Size()), op.Image.Dims(1)...)
	if op.Definition.SVD == nil || op.IsGiven() {
		return zero
	}
	x, _ := b.conjugateGradients(b.Expand(zero, dims...), b.Scalar(0), roughIterations, 0)
	return x
}

// roughIterations are the conjugate gradients for A⁺·y: super-resolution, for which they stand in, needs few.
const roughIterations = 3

// wantsSVD is an [Info.Refuses] of methods that need the decomposition.
func wantsSVD(task operator.Definition) string {
	switch {
	case task.SVD != nil:
		return ""
	case task.IsGiven():
		return "the method needs a singular value decomposition of the operator, which a kernel from a file does not have"
	}
	return "the method needs a singular value decomposition of the operator, which this task does not have"
}

// spread makes noise of the covariance (AᵀA/sigma² + rho/sigma²)⁻¹ from noise of the covariance I.
func (s SVD) spread(noise, rho onnx.Value, sigma float64) onnx.Value {
	b, values := s.b, s.Values(0)
	factor := b.Div(b.Scalar(float32(sigma)), b.Sqrt(b.Add(b.Mul(values, values), rho)))
	return s.V(b.Mul(s.Vt(noise), factor))
}
