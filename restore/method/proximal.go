package method

import (
	"errors"
	"math"

	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/restore/parameter"
)

// minimum are the parameters of [Builder.minimum], beside those of [recovery] and [assumedNoise].
func minimum() parameter.List {
	return parameter.List{
		{Name: "lambda", Schedule: true, Max: largest, Open: true, Default: 2, Doc: "weight λ of the prior against the measurement"},
		{Name: "cg_steps", Min: 1, Max: 100, Integer: true, Default: 5,
			Doc: "iterations of conjugate gradients in the data step, for operators without a decomposition"},
	}
}

// minimum is [Builder.Proximal] with the parameters of settings and the planned weight rho.
func (b *Builder) minimum(s Settings, v onnx.Value) (d, norm onnx.Value) {
	return b.Proximal(v, b.Planned("rho"), s.Number("noise_std"), int(s.Number("cg_steps")), recoverBy(s))
}

// proximalWeight is ρ_t of a step from 0. As DiffPIR's, it is that of images in [0, 1], where the noise σ of y is half as large.
func proximalWeight(s Settings, l Level, step int) float64 {
	sigma := s.Number("noise_std") / 2
	return max(s.At("lambda", step)*sigma*sigma*l.Alpha/(1-l.Alpha), 1e-30)
}

// Proximal returns the step d = x − v of the data term's proximal operator,
//
//	x = argmin_x ‖y − A(x)‖² + ρ·‖x − v‖²
//
// at the images v over the observed entries, and ‖y − A(v)‖ per image, shape [N]. It is that of [SVD.Proximal] for an operator with a
// decomposition. For others d solves
//
//	(JᵀJ + ρ)·d = Jᵀ·(y − A(v))
//
// by iterations of conjugate gradients that begin with d = 0. J is the Jacobian of A at v: A itself if it is linear, else this is a step of
// Gauss and Newton. limit is that of [Builder.PullBack]. An operator with an error of its own has [operator.Expression.Proximal] in place of both, with the
// weight ρ/noise²; noise is the standard deviation of y from which ρ was made.
func (b *Builder) Proximal(v, rho onnx.Value, noise float64, iterations int, limit float64) (d, norm onnx.Value) {
	weight := func() onnx.Value { return b.Mul(rho, b.Scalar(float32(1/(noise*noise)))) }
	if x, ok := b.run.Operator.Proximal(b.Graph, v, b.in.measurement, weight); ok {
		return b.Minus(x, v), b.Norm(b.Residual(v))
	}
	if svd, ok := b.decomposed(); ok {
		return svd.Proximal(v, rho)
	}
	return b.conjugateGradients(v, rho, iterations, float32(limit))
}

// Proximal is [Builder.Proximal] by the singular value decomposition A = U·S·Vᵀ, which is exact:
//
//	d = V·S/(S² + ρ)·Uᵀ·(y − A(v))
//
// With weights w of the pixels of y, S² and r are S²·w and r·w where V is the identity. Else, the largest weight being m, this is the minimum for the entries that x must explain, were all weights m. An entry of less weight
// is taken as (w/m)·y + (1 − w/m)·A(x) for the last x, which decreases the weighted term in each of [weightedRounds] (the EM algorithm for missing data, where w is 0).
func (s SVD) Proximal(v, rho onnx.Value) (d, norm onnx.Value) {
	r := s.b.Residual(v)
	return s.explain(r, rho), s.b.Norm(r)
}

// explain is the step of [SVD.Proximal] for a residual, with the square roots of the weights.
func (s SVD) explain(r, rho onnx.Value) onnx.Value {
	b, values := s.b, s.Values(0)
	if !b.run.Weighted {
		return s.V(b.Mul(s.Ut(r), b.shrink(values, rho)))
	}
	if s.d.Diagonal {
		w := b.Mul(b.in.weights, b.in.weights)
		return b.Div(b.Mul(s.Ut(b.Mul(r, b.in.weights)), values), b.Add(b.Mul(b.Mul(values, values), w), rho))
	}
	top := b.Apply("GlobalMaxPool", onnx.Float, []int{r.Dims[0], 1, 1, 1}, nil, b.in.weights)
	root := b.Div(b.in.weights, top)
	factor, rest := b.shrink(values, b.Div(rho, b.Mul(top, top))), b.Minus(b.Scalar(1), b.Mul(root, root))
	r = b.Div(b.Mul(r, root), top)
	d := s.V(b.Mul(s.Ut(r), factor))
	for range weightedRounds {
		a := b.apply(d)
		b.applied(d, a.Y)
		d = s.V(b.Mul(s.Ut(b.Add(r, b.Mul(rest, a.Y))), factor))
	}
	return d
}

// weightedRounds is the number of repetitions for weights of the pixels of y.
const weightedRounds = 2

// shrink returns S/(S² + ρ).
func (b *Builder) shrink(values, rho onnx.Value) onnx.Value {
	return b.Div(values, b.Add(b.Mul(values, values), rho))
}

// probe is the root mean square change of the images for a difference of A: large beside the rounding of float32, small beside the range
// of images.
const probe = 0.01

func (b *Builder) conjugateGradients(v, rho onnx.Value, iterations int, limit float32) (d, norm onnx.Value) {
	at, r := b.residual(v)
	j := jacobian{b: b, v: v, at: at, r: r, limit: limit}
	j.pulled = j.back(r)
	g := j.pulled
	d = b.Mul(v, b.Scalar(0))
	p, square := g, b.dot(g, g)
	for i := range iterations {
		q := j.along(p)
		// ‖J·p‖² is pᵀJᵀJ·p, without Jᵀ.
		curvature := b.Add(b.dot(q, q), b.Mul(b.dot(p, p), rho))
		length := b.Div(square, b.Max(curvature, b.Scalar(tiny)))
		d = b.Add(d, b.perImage(p, length))
		if i == iterations-1 {
			break
		}
		g = b.Minus(g, b.perImage(b.Add(j.back(q), b.Mul(p, rho)), length))
		next := b.dot(g, g)
		p = b.Add(g, b.perImage(p, b.Div(next, b.Max(square, b.Scalar(tiny)))))
		square = next
	}
	return d, b.Norm(r)
}

// jacobian is the Jacobian J of A at v over the observed entries, where y − A(v) is r.
type jacobian struct {
	b     *Builder
	v     onnx.Value
	at    operator.Applied
	r     onnx.Value
	limit float32 // see [Builder.PullBack]
	// pulled is Jᵀ·r.
	pulled onnx.Value
}

// back returns Jᵀ·w of weights in the shape of y.
func (j jacobian) back(w onnx.Value) onnx.Value {
	j.b.spend(Cost{Operator: 1})
	seed := j.b.weigh(w)
	if j.limit > 0 {
		return built(j.at.Recover(seed, j.r, j.limit))
	}
	return built(j.at.Gradient(seed))
}

// along returns J·p of images p. Of a nonlinear operator it is the derivative of Jᵀ·w in w, which is exact: conjugate gradients need a J and a Jᵀ
// that fit.
func (j jacobian) along(p onnx.Value) onnx.Value {
	b, op := j.b, j.b.run.Operator
	b.spend(Cost{Operator: 1})
	if op.Linear {
		return b.weigh(b.apply(p).Y)
	}
	out, err := b.Graph.Gradient(j.pulled, j.r, p)
	if errors.Is(err, onnx.ErrNoGradient) { // in the gradient of an operator file
		return j.difference(p)
	}
	return built(out, err)
}

// difference approximates J·p by a difference of length [probe].
func (j jacobian) difference(p onnx.Value) onnx.Value {
	b, op := j.b, j.b.run.Operator
	length := b.Max(b.Norm(p), b.Scalar(tiny))
	step := b.Scalar(float32(probe * math.Sqrt(float64(op.Image.Size()))))
	moved := b.apply(b.Add(j.v, b.perImage(p, b.Div(step, length))))
	change := b.weigh(b.Minus(moved.Y, j.at.Y))
	return b.perImage(change, b.Div(length, step))
}

// dot returns the inner product per item, shape [N], of images or of measurements of any rank.
func (b *Builder) dot(x, y onnx.Value) onnx.Value {
	axes := []int{1, 2, 3}
	return b.Reshape(b.ReduceSum(b.Mul(x, y), axes[:len(x.Dims)-1]...), x.Dims[0])
}
