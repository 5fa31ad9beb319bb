package solver

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"

	"ddiff/restore/method"
	"ddiff/restore/onnx"
	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/raster"
)

// The inputs of the model of a step.
const (
	inputTime        = "time"
	inputScalars     = "scalars"
	inputMeasurement = "y"
	inputMask        = "draws"
)

func stateInput(name string) string { return "state " + name }
func drawInput(name string) string  { return "draw " + name }

// builder builds the model of a step.
type builder struct {
	run       *method.Run
	precision onnxruntime.Precision
	unroll    int // see method.Inputs
	// divided: another session computes the network.
	divided bool
}

// stepModel is the model of one step of a batch.
type stepModel struct {
	model []byte
	// inputs are in any order. The outputs are the state and the computed curves, in declared order.
	inputs, outputs []onnx.Value
	// stages are the parts of a divided step, without model, and results those of the evaluations between them.
	stages  []onnx.Stage
	results []onnx.Value
}

// digest is equal for equal models.
func (m stepModel) digest() string {
	h := sha256.New()
	h.Write(m.model)
	for _, stage := range m.stages {
		sum := sha256.Sum256(stage.Model)
		h.Write(sum[:])
	}
	return string(h.Sum(nil))
}

// step builds the model of a step of n images. Its inputs have fixed shapes.
func (b builder) step(n int) (m stepModel, err error) {
	g := onnx.NewGraph(b.run.Prior.Opset())
	g.Divide(b.divided)
	g.Half(b.precision == onnxruntime.FP16)
	input := func(name string, t onnx.DType, dims ...int) onnx.Value {
		v := g.Input(name, t, dims...)
		m.inputs = append(m.inputs, v)
		return v
	}
	in := method.Inputs{Unroll: b.unroll}
	stateDims := b.run.StateDims(n)
	for i, t := range b.run.Info.State {
		in.State = append(in.State, input(stateInput(t.Name), onnx.Float, stateDims[i]...))
	}
	in.Measurement = input(inputMeasurement, onnx.Float, b.run.Operator.MeasurementDims(n)...)
	if d := b.run.Operator.ParameterDims(n); d != nil {
		in.Mask = input(inputMask, onnx.Float, d...)
	}
	in.Time = input(inputTime, onnx.Int64, 1)
	in.Scalars = input(inputScalars, onnx.Float, len(b.run.Row(0)))
	for i, d := range b.run.Info.Draws {
		in.Draws = append(in.Draws, input(drawInput(d.Name), onnx.Float, b.run.DrawDims(i, n)...))
	}
	state, curves, err := b.run.Build(g, in)
	if err != nil {
		return stepModel{}, fmt.Errorf("build step: %w", err)
	}
	m.outputs = slices.Concat(state, curves)
	for i := range m.outputs {
		name := fmt.Sprint("next ", i)
		g.Output(name, m.outputs[i])
		m.outputs[i].Name = name
	}
	if b.divided {
		m.stages, m.results, err = g.Stages("ddiff")
	} else {
		m.model, err = g.Marshal("ddiff")
	}
	return m, err
}

// model builds the model of a step of a run.
func (s *Solver) model(run *method.Run) (stepModel, error) {
	b := builder{run, s.build.Precision, unrolled(s.rt.Provider()), s.divides()}
	m, err := b.step(s.n)
	if b.divided {
		err = divideError(run, s.rt.Provider(), err)
	}
	return m, err
}

// compile builds and compiles the model of a step and allocates its tensors.
func (s *Solver) compile() error {
	m, err := s.model(s.run)
	if err != nil {
		return err
	}
	s.digest = m.digest()
	for _, v := range m.inputs {
		t, err := onnxruntime.NewTensor(v.DType, v.Dims...)
		if err != nil {
			return fmt.Errorf("input %s: %w", v.Name, err)
		}
		s.in[v.Name], s.inputs = t, append(s.inputs, t)
	}
	if s.outputs, err = onnxruntime.NewTensors(m.outputs...); err != nil {
		return err
	}
	if s.sess, err = s.session(m); err != nil {
		return fmt.Errorf("compile %s for %s, batch %d: %w", s.run.Info.Name, s.run.Operator.Task, s.n, err)
	}
	return nil
}

// session compiles the model of a step.
func (s *Solver) session(m stepModel) (session, error) {
	if s.divides() {
		d, err := s.newDivided(m, maps.Clone(s.in))
		if err != nil {
			return nil, err // not a nil pointer in an interface
		}
		return d, nil
	}
	sess, err := s.rt.NewSession(m.model, onnx.Names(m.inputs), onnx.Names(m.outputs))
	if err != nil {
		return nil, err
	}
	return sess, nil
}

// makeStep makes a step with its noise, one slice per draw, and moves the new state to the inputs.
func (s *Solver) makeStep(ctx context.Context, at int, noise [][]float32, curves []Curves) error {
	s.in[inputTime].I64[0] = int64(s.run.Steps[at].Time)
	copy(s.in[inputScalars].F32, s.run.Row(at))
	for d, draw := range s.run.Info.Draws {
		copy(s.in[drawInput(draw.Name)].F32, noise[d])
	}
	if err := s.sess.Run(ctx, s.inputs, s.outputs); err != nil {
		return err
	}
	states := len(s.run.Info.State)
	for i, t := range s.run.Info.State {
		copy(s.in[stateInput(t.Name)].F32, s.outputs[i].F32)
	}
	values := s.outputs[states:]
	for i, v := range values {
		if _, ok := raster.Finite(v.F32); !ok {
			return fmt.Errorf("%w: %s is not finite: the measurement has extreme values, or %s", ErrDiverged, s.run.Computed()[i], s.tooLarge())
		}
	}
	for i := range curves {
		s.record(&curves[i], s.run.Steps[at], func(curve int) float64 { return float64(values[curve].F32[i]) })
	}
	return nil
}
