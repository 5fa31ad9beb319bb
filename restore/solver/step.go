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

// builder builds the model of a step.
type builder struct {
	run       *method.Run
	precision onnxruntime.Precision
	unroll    int // see method.Run.Build
	// divided: another session computes the network.
	divided bool
}

// stepModel is the model of one step of a batch.
type stepModel struct {
	// inputs are in any order. The outputs are the state and the computed curves, in declared order.
	inputs, outputs []onnx.Value
	// stages are the parts of a divided step, or the step as one part. results are those of the evaluations between them.
	stages  []onnx.Stage
	results []onnx.Value
}

// digest is equal for equal models.
func (m stepModel) digest() string {
	h := sha256.New()
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
	step, err := b.run.Build(g, n, b.unroll)
	if err != nil {
		return stepModel{}, fmt.Errorf("build step: %w", err)
	}
	m.inputs = step.Inputs
	m.outputs = slices.Concat(step.State, step.Curves)
	for i := range m.outputs {
		name := fmt.Sprint("next ", i)
		g.Output(name, m.outputs[i])
		m.outputs[i].Name = name
	}
	if b.divided {
		m.stages, m.results, err = g.Stages("ddiff")
		return m, err
	}
	model, err := g.Marshal("ddiff")
	m.stages = []onnx.Stage{{Model: model, Inputs: m.inputs, Outputs: m.outputs}}
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
		s.in[v.Name] = t
	}
	if s.outputs, err = onnxruntime.NewTensors(m.outputs...); err != nil {
		return err
	}
	if s.sess, err = s.newSession(m, maps.Clone(s.in)); err != nil {
		return fmt.Errorf("compile %s for %s, batch %d: %w", s.run.Info.Name, s.run.Operator.Task, s.n, err)
	}
	return nil
}

// makeStep makes a step with its noise, one slice per draw, and moves the new state to the inputs.
func (s *Solver) makeStep(ctx context.Context, at int, noise [][]float32, curves []Curves) error {
	s.in[method.InputTime].I64[0] = int64(s.run.Steps[at].Time)
	copy(s.in[method.InputScalars].F32, s.run.Row(at))
	for d, draw := range s.run.Info.Draws {
		copy(s.in[method.DrawInput(draw.Name)].F32, noise[d])
	}
	if err := s.sess.Run(ctx, s.outputs); err != nil {
		return err
	}
	states := len(s.run.Info.State)
	for i, t := range s.run.Info.State {
		copy(s.in[method.StateInput(t.Name)].F32, s.outputs[i].F32)
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
