package solver

import (
	"fmt"
	"slices"

	"ddiff/restore/onnx"
	"ddiff/restore/operator"
	"ddiff/restore/prior"
)

// The inputs and outputs of the chunk model, in the order of the session.
var (
	inputNames  = []string{"x", "u", "x_before", "z_before", "y", "trip", "time", "scalars", "noise", "draws"}
	outputNames = []string{"x_next", "u_next", "x_last", "z_last", "data_norm", "primal_norm", "dual_norm", "delta_x", "delta_z"}
)

// state is what goes from step to step.
type state struct{ x, u, xBefore, zBefore onnx.Value }

// builder makes the expression of one step.
type builder struct {
	cfg   Config
	op    *operator.Operator
	prior *prior.Prior
}

// chunk builds the model that makes up to k steps of n images. Its inputs are fixed in
// shape; "trip" says how many steps to make, rows of the tables beyond it are not read.
func (b builder) chunk(n, k int) (model []byte, inputs, outputs []onnx.Value, err error) {
	g := onnx.NewGraph(b.prior.Opset())
	image := b.op.Image.Dims(n)
	in := map[string]onnx.Value{}
	for _, name := range []string{"x", "u", "x_before", "z_before"} {
		in[name] = g.Input(name, onnx.Float, image...)
	}
	in["y"] = g.Input("y", onnx.Float, b.op.MeasurementDims(n)...)
	in["trip"] = g.Input("trip", onnx.Int64, 1)
	in["time"] = g.Input("time", onnx.Int64, k, 1)
	in["scalars"] = g.Input("scalars", onnx.Float, k, scalars)
	in["noise"] = g.Input("noise", onnx.Float, append([]int{k}, image...)...)
	if dims := b.op.ParameterDims(n); dims != nil {
		in["draws"] = g.Input("draws", onnx.Float, dims...)
	}

	start := []onnx.Value{in["x"], in["u"], in["x_before"], in["z_before"]}
	var inner error
	final, curves := g.Loop(in["trip"], start, func(body *onnx.Graph, i onnx.Value, s []onnx.Value) (next, collect []onnx.Value) {
		row := func(name string) onnx.Value { return body.Gather(in[name], i) }
		st, norms, err := b.step(body, state{s[0], s[1], s[2], s[3]}, in["y"], in["draws"], row("time"), row("scalars"), row("noise"))
		inner = err
		if err != nil {
			return s, nil
		}
		return []onnx.Value{st.x, st.u, st.xBefore, st.zBefore}, norms
	})
	if inner != nil {
		return nil, nil, nil, fmt.Errorf("build step: %w", inner)
	}
	outs := slices.Concat(final, curves)
	for i, v := range outs {
		g.Output(outputNames[i], v)
	}
	for _, name := range inputNames {
		if v, ok := in[name]; ok {
			inputs = append(inputs, v)
		}
	}
	for i := range outs {
		outs[i].Name = outputNames[i]
	}
	model, err = g.Marshal("ddiff")
	return model, inputs, outs, err
}

// step builds one step. The norms that it returns have shape [N], in the order of the
// chunk's outputs.
func (b builder) step(g *onnx.Graph, s state, y, draws, time, row, noise onnx.Value) (state, []onnx.Value, error) {
	scalar := func(i int) onnx.Value { return g.Slice(row, 0, i, i+1) }
	m := b.cfg.Method

	xt := s.x
	if m == DiffPnPADMM {
		xt = g.Add(s.x, s.u)
	}
	predicted, err := b.prior.Predict(g, xt, time)
	if err != nil {
		return state{}, nil, err
	}
	z := g.Clip(g.Add(g.Mul(xt, scalar(zOfX)), g.Mul(predicted, scalar(zOfPred))), -1, 1)

	v := z
	if m.dual() {
		v = g.Minus(z, s.u)
	}
	pull, dataNorm, err := b.pull(g, v, y, draws, scalar(stepSize))
	if err != nil {
		return state{}, nil, err
	}
	x := g.Add(v, pull)
	if m.dual() {
		// The curve is that of z; without a dual variable v is z.
		dataNorm = g.Norm(b.op.Weighted(g, g.Minus(y, b.op.Forward(g, z, draws)), draws))
	}

	next := x
	if m.renoised() {
		next = g.Add(g.Mul(x, scalar(nextOfX)), g.Mul(s.x, scalar(nextOfXt)))
		if m.dual() {
			next = g.Add(next, g.Mul(s.u, scalar(nextOfU)))
		}
		next = g.Add(next, noise)
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
