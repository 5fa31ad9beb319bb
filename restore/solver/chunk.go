package solver

import (
	"fmt"
	"slices"

	"ddiff/restore/onnx"
)

// outputNames are the outputs of the model of a chunk, in the order of the session.
var outputNames = []string{"x_next", "u_next", "x_last", "z_last", "data_norm", "primal_norm", "dual_norm", "delta_x", "delta_z"}

// chunk is the model that makes the steps of one call.
type chunk struct {
	model []byte
	// inputs are in any order, outputs in that of outputNames; the norms among the outputs
	// have shape [steps made, n].
	inputs, outputs []onnx.Value
}

// chunk builds the model that makes k steps of n images. Its inputs are fixed in shape. In
// FormLoop the inputs of the steps are the rows of tables, and "trip" says how many of the
// steps to make; otherwise each step has inputs of its own, see stepInput.
func (b builder) chunk(n, k int) (chunk, error) {
	g := onnx.NewGraph(b.prior.Opset())
	g.Half(b.build.Precision == FP16)
	var c chunk
	input := func(name string, t onnx.DType, dims ...int) onnx.Value {
		v := g.Input(name, t, dims...)
		c.inputs = append(c.inputs, v)
		return v
	}
	image := b.op.Image.Dims(n)
	start := state{
		x: input("x", onnx.Float, image...), u: input("u", onnx.Float, image...),
		xBefore: input("x_before", onnx.Float, image...), zBefore: input("z_before", onnx.Float, image...),
	}
	f := fixed{y: input("y", onnx.Float, b.op.MeasurementDims(n)...)}
	if dims := b.op.ParameterDims(n); dims != nil {
		f.draws = input("draws", onnx.Float, dims...)
	}
	var err error
	if b.build.Form == FormLoop {
		trip := input("trip", onnx.Int64, 1)
		table := perStep{input("time", onnx.Int64, k, 1), input("scalars", onnx.Float, k, scalars), input("noise", onnx.Float, append([]int{k}, image...)...)}
		c.outputs, err = b.loop(g, trip, start, f, table)
	} else {
		rows := make([]perStep, k)
		for j := range rows {
			rows[j] = perStep{input(stepInput("time", j), onnx.Int64, 1), input(stepInput("scalars", j), onnx.Float, scalars), input(stepInput("noise", j), onnx.Float, image...)}
		}
		c.outputs, err = b.unrolled(g, start, f, rows)
	}
	if err != nil {
		return chunk{}, fmt.Errorf("build step: %w", err)
	}
	for i, v := range c.outputs {
		g.Output(outputNames[i], v)
		c.outputs[i].Name = outputNames[i]
	}
	c.model, err = g.Marshal("ddiff")
	return c, err
}

// stepInput names an input of step j of a model without a loop.
func stepInput(name string, j int) string { return fmt.Sprintf("%s_%d", name, j) }

func (s state) values() []onnx.Value { return []onnx.Value{s.x, s.u, s.xBefore, s.zBefore} }

// loop makes the steps with the runtime's Loop.
func (b builder) loop(g *onnx.Graph, trip onnx.Value, start state, f fixed, table perStep) ([]onnx.Value, error) {
	var inner error
	final, curves := g.Loop(trip, start.values(), func(body *onnx.Graph, i onnx.Value, s []onnx.Value) (next, collect []onnx.Value) {
		at := perStep{body.Gather(table.time, i), body.Gather(table.scalars, i), body.Gather(table.noise, i)}
		st, norms, err := b.step(body, state{s[0], s[1], s[2], s[3]}, f, at)
		inner = err
		if err != nil {
			return s, nil
		}
		return st.values(), norms
	})
	return slices.Concat(final, curves), inner
}

// unrolled makes the steps one after the other.
func (b builder) unrolled(g *onnx.Graph, s state, f fixed, rows []perStep) ([]onnx.Value, error) {
	curves := make([][]onnx.Value, len(outputNames)-len(s.values())) // by norm, then by step
	for _, at := range rows {
		var norms []onnx.Value
		var err error
		if s, norms, err = b.step(g, s, f, at); err != nil {
			return nil, err
		}
		for i, v := range norms {
			curves[i] = append(curves[i], g.Reshape(v, 1, v.Dims[0]))
		}
	}
	outs := s.values()
	for _, c := range curves {
		if len(c) == 1 {
			outs = append(outs, c[0])
		} else {
			outs = append(outs, g.Concat(0, c...))
		}
	}
	return outs, nil
}
