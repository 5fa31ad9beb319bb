package solver

import (
	"errors"
	"fmt"
	"slices"

	"ddiff/restore/method"
	"ddiff/restore/onnx"
	"ddiff/restore/onnx/onnxruntime"
)

// The inputs of a chunk's model.
const (
	inputTrip        = "trip" // FormLoop: the number of steps to make
	inputTime        = "time"
	inputScalars     = "scalars"
	inputMeasurement = "y"
	inputMask        = "draws"
)

func stateInput(name string) string  { return "state " + name }
func stateOutput(name string) string { return "next " + name }
func drawInput(name string) string   { return "draw " + name }
func curveOutput(name string) string { return "curve " + name }

// stepInput names an input of step j of a model without a loop.
func stepInput(name string, j int) string { return fmt.Sprintf("%s_%d", name, j) }

// builder builds the model of a chunk.
type builder struct {
	run    *method.Run
	build  Build
	unroll int // see method.Inputs
	// divided: another session computes the network.
	divided bool
	// block is the number of channels per block in the layout of the network's images, see onnx.Graph.Block.
	block int
}

// chunk is the model of the steps of one call.
type chunk struct {
	model []byte
	// inputs are in any order. The outputs are the state and the computed curves, in declared order; the curves
	// have shape [steps made, n].
	inputs, outputs []onnx.Value
	// stages are the parts of a divided step, without model, and results those of the evaluations between them.
	stages  []onnx.Stage
	results []onnx.Value
}

// chunk builds the model that makes k steps of n images. Its inputs have fixed shapes. In FormLoop the inputs of the
// steps are the rows of tables; otherwise each step has inputs of its own, see stepInput.
//
// A network in blocks has no gradient. A method that needs one without stating it gets a network without.
func (b builder) chunk(n, k int) (chunk, error) {
	if b.run.Info.Kept(b.run.Settings) > 0 {
		b.block = 0
	}
	c, err := b.graph(n, k)
	if b.block > 0 && errors.Is(err, onnx.ErrNoGradient) {
		b.block = 0
		return b.graph(n, k)
	}
	return c, err
}

// graph is chunk for one layout of the network.
func (b builder) graph(n, k int) (chunk, error) {
	g := onnx.NewGraph(b.run.Prior.Opset())
	g.Divide(b.divided)
	g.Half(b.build.Precision == onnxruntime.FP16)
	g.Block(b.block)
	var c chunk
	input := func(name string, t onnx.DType, dims ...int) onnx.Value {
		v := g.Input(name, t, dims...)
		c.inputs = append(c.inputs, v)
		return v
	}
	stateDims := b.run.StateDims(n)
	in := method.Inputs{Unroll: b.unroll}
	for i, t := range b.run.Info.State {
		in.State = append(in.State, input(stateInput(t.Name), onnx.Float, stateDims[i]...))
	}
	in.Measurement = input(inputMeasurement, onnx.Float, b.run.Operator.MeasurementDims(n)...)
	if d := b.run.Operator.ParameterDims(n); d != nil {
		in.Mask = input(inputMask, onnx.Float, d...)
	}
	// step adds the inputs of one step, or with lead the tables of several.
	step := func(name func(string) string, lead ...int) method.Inputs {
		at := in
		at.Time = input(name(inputTime), onnx.Int64, append(slices.Clone(lead), 1)...)
		at.Scalars = input(name(inputScalars), onnx.Float, append(slices.Clone(lead), len(b.run.Row(0)))...)
		at.Draws = nil
		for i, d := range b.run.Info.Draws {
			at.Draws = append(at.Draws, input(name(drawInput(d.Name)), onnx.Float, slices.Concat(lead, b.run.DrawDims(i, n))...))
		}
		return at
	}
	var err error
	if b.build.Form == FormLoop {
		trip := input(inputTrip, onnx.Int64, 1)
		c.outputs, err = b.loop(g, trip, step(func(s string) string { return s }, k))
	} else {
		steps := make([]method.Inputs, k)
		for j := range steps {
			steps[j] = step(func(s string) string { return stepInput(s, j) })
		}
		c.outputs, err = b.unrolled(g, steps)
	}
	if err != nil {
		return chunk{}, fmt.Errorf("build step: %w", err)
	}
	for i, name := range b.outputs() {
		g.Output(name, c.outputs[i])
		c.outputs[i].Name = name
	}
	if b.divided {
		c.stages, c.results, err = g.Stages("ddiff")
	} else {
		c.model, err = g.Marshal("ddiff")
	}
	return c, err
}

// outputs names the outputs of the model.
func (b builder) outputs() []string {
	var out []string
	for _, t := range b.run.Info.State {
		out = append(out, stateOutput(t.Name))
	}
	for _, c := range b.run.Computed() {
		out = append(out, curveOutput(c))
	}
	return out
}

// loop makes the steps with the runtime's Loop.
func (b builder) loop(g *onnx.Graph, trip onnx.Value, tables method.Inputs) ([]onnx.Value, error) {
	var inner error
	final, curves := g.Loop(trip, tables.State, func(body *onnx.Graph, i onnx.Value, state []onnx.Value) (next, collect []onnx.Value) {
		at := tables
		at.State, at.Time, at.Scalars, at.Draws = state, body.Gather(tables.Time, i), body.Gather(tables.Scalars, i), nil
		for _, d := range tables.Draws {
			at.Draws = append(at.Draws, body.Gather(d, i))
		}
		next, collect, inner = b.run.Build(body, at)
		if inner != nil {
			return state, nil
		}
		return next, collect
	})
	return slices.Concat(final, curves), inner
}

// unrolled makes the steps one after the other.
func (b builder) unrolled(g *onnx.Graph, steps []method.Inputs) ([]onnx.Value, error) {
	state := steps[0].State
	curves := make([][]onnx.Value, len(b.run.Computed())) // by curve, then by step
	for _, at := range steps {
		at.State = state
		next, values, err := b.run.Build(g, at)
		if err != nil {
			return nil, err
		}
		state = next
		for i, v := range values {
			curves[i] = append(curves[i], g.Reshape(v, 1, v.Dims[0]))
		}
	}
	outs := slices.Clone(state)
	for _, c := range curves {
		if len(c) == 1 {
			outs = append(outs, c[0])
		} else {
			outs = append(outs, g.Concat(0, c...))
		}
	}
	return outs, nil
}
