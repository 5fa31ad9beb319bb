package solver

import (
	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/restore/prior"
)

// state is what goes from step to step.
type state struct{ x, u, xBefore, zBefore onnx.Value }

// fixed is what all steps read: the measurements, and the masks or kernels if there are any.
type fixed struct{ y, draws onnx.Value }

// perStep is what one step reads: the time index [1], the coefficients and the noise.
type perStep struct{ time, scalars, noise onnx.Value }

// builder makes the expression of one step.
type builder struct {
	cfg   Config
	op    *operator.Operator
	prior *prior.Prior
	build Build
}

// step builds one step. The norms that it returns have shape [N], in the order of the
// chunk's outputs.
func (b builder) step(g *onnx.Graph, s state, f fixed, at perStep) (state, []onnx.Value, error) {
	scalar := func(i int) onnx.Value { return g.Slice(at.scalars, 0, i, i+1) }
	m := b.cfg.Method

	xt := s.x
	if m == DiffPnPADMM {
		xt = g.Add(s.x, s.u)
	}
	predicted, err := b.prior.Predict(g, xt, at.time)
	if err != nil {
		return state{}, nil, err
	}
	z := g.Clip(g.Add(g.Mul(xt, scalar(zOfX)), g.Mul(predicted, scalar(zOfPred))), -1, 1)

	v := z
	if m.dual() {
		v = g.Minus(z, s.u)
	}
	pull, dataNorm, err := b.pull(g, v, f.y, f.draws, scalar(stepSize))
	if err != nil {
		return state{}, nil, err
	}
	x := g.Add(v, pull)
	if m.dual() {
		// The curve is that of z; without a dual variable v is z.
		dataNorm = g.Norm(b.op.Weighted(g, g.Minus(f.y, b.op.Forward(g, z, f.draws)), f.draws))
	}

	next := x
	if m.renoised() {
		next = g.Add(g.Mul(x, scalar(nextOfX)), g.Mul(s.x, scalar(nextOfXt)))
		if m.dual() {
			next = g.Add(next, g.Mul(s.u, scalar(nextOfU)))
		}
		next = g.Add(next, at.noise)
	}
	u := s.u
	if m.dual() {
		u = pull // u + x − z = x − v
	}
	norms := []onnx.Value{
		dataNorm,
		g.Norm(g.Minus(x, z)),
		g.Norm(u),
		g.Norm(g.Minus(x, s.xBefore)),
		g.Norm(g.Minus(z, s.zBefore)),
	}
	return state{x: next, u: u, xBefore: x, zBefore: z}, norms, nil
}

// pull builds −γ·∇_v‖y − A(v)‖, and ‖y − A(v)‖ per image. At a zero residual it is zero.
func (b builder) pull(g *onnx.Graph, v, y, draws, gamma onnx.Value) (pull, norm onnx.Value, err error) {
	n := v.Dims[0]
	av := b.op.Forward(g, v, draws)
	r := b.op.Weighted(g, g.Minus(y, av), draws)
	norm = g.Norm(r)

	// −∇ is Jᵀ·W·r over the norm, or twice Jᵀ·W·r.
	var factor onnx.Value
	if b.cfg.Gradient == GradientNorm {
		factor = g.Div(gamma, g.Max(norm, g.Scalar(1e-12)))
	} else {
		factor = g.Expand(g.Mul(gamma, g.Scalar(2)), n)
	}
	shape := []int{n}
	for range b.op.Measurement {
		shape = append(shape, 1)
	}
	seed := b.op.Weighted(g, g.Mul(r, g.Reshape(factor, shape...)), draws)
	pull, err = g.Gradient(av, v, seed)
	return pull, norm, err
}
