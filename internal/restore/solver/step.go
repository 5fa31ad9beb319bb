package solver

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"

	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/raster"
	"ddiff/restore/method"
	"ddiff/restore/onnx"
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
	// inputs are in any order. The outputs are the state and the computed curves, in declared order, and the norm of the first tensor of the state.
	inputs, outputs []onnx.Value
	// stages are the parts of a divided step, or the step as one part. results are those of the evaluations between them.
	stages  []onnx.Stage
	results []onnx.Value
}

// digest is equal for equal models. It is not SHA-256, which takes longer than all else before a reused solver's first step.
func (m stepModel) digest(seed maphash.Seed) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, stage := range m.stages {
		maphash.WriteComparable(&h, len(stage.Model))
		h.Write(stage.Model)
	}
	return h.Sum64()
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
	m.outputs = append(slices.Concat(step.State, step.Curves), g.Norm(step.State[0]))
	for i := range m.outputs {
		name := fmt.Sprint("next ", i)
		g.Output(name, m.outputs[i])
		m.outputs[i].Name = name
	}
	m.stages, m.results, err = g.Stages("ddiff")
	return m, err
}

// model builds the model of a step of a run.
func (s *Solver) model(run *method.Run) (stepModel, error) {
	if !s.divides() && s.build.Form != "" {
		formed := *run
		var err error
		if formed.Prior, err = run.Prior.InForm(s.rt, s.build.Form); err != nil {
			return stepModel{}, err
		}
		run = &formed
	}
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
	s.digest = m.digest(s.seed)
	if s.sess, err = s.newSession(m); err == nil {
		err = s.newTensors(m)
	}
	if err != nil {
		return fmt.Errorf("compile %s for %s, batch %d: %w", s.run.Info.Name, s.run.Operator.Task, s.n, err)
	}
	return nil
}

// newTensors makes the tensors of a step, and binds the outputs that the host reads.
func (s *Solver) newTensors(m stepModel) (err error) {
	last, inputs := s.sess.last(), map[string]onnx.Value{}
	for _, v := range m.inputs {
		inputs[v.Name] = v
	}
	for i, t := range s.run.Info.State {
		name := method.StateInput(t.Name)
		b, err := newBuffers(last.Binding, i, inputs[name])
		if err != nil {
			return err
		}
		s.state, s.in[name] = append(s.state, b), b.host
		delete(inputs, name)
	}
	for _, d := range s.run.Info.Draws {
		name := method.DrawInput(d.Name)
		for i := range s.draws {
			t, err := last.NewInput(inputs[name])
			if err != nil {
				return err
			}
			s.draws[i] = append(s.draws[i], t)
		}
		delete(inputs, name)
	}
	for name, v := range inputs {
		if s.in[name], err = last.NewInput(v); err != nil {
			return err
		}
	}
	for i, v := range m.outputs[len(s.state):] {
		t, err := last.NewHost(v)
		if err == nil {
			err = last.SetOutput(len(s.state)+i, t)
		}
		if err != nil {
			return err
		}
		s.curves = append(s.curves, t)
	}
	s.norm, s.curves = s.curves[len(s.curves)-1], s.curves[:len(s.curves)-1]
	return s.newReader()
}

// makeStep makes a step with the noise of s.draws. first is the first image of the solver in the batch.
func (s *Solver) makeStep(ctx context.Context, at, first int, curves []Curves) error {
	s.in[method.InputTime].I64[0] = int64(s.run.Steps[at].Time)
	copy(s.in[method.InputScalars].F32, s.run.Row(at))
	inputs := map[string]*onnxruntime.Tensor{method.InputTime: s.in[method.InputTime], method.InputScalars: s.in[method.InputScalars]}
	for d, draw := range s.run.Info.Draws {
		inputs[method.DrawInput(draw.Name)] = s.draws[at%2][d]
	}
	for i, t := range s.run.Info.State {
		inputs[method.StateInput(t.Name)] = s.state[i].now
		if err := s.sess.last().SetOutput(i, s.state[i].next()); err != nil {
			return err
		}
	}
	for name, t := range inputs {
		if err := s.sess.set(name, t); err != nil {
			return err
		}
	}
	if err := s.sess.Run(ctx); err != nil {
		return err
	}
	for i, v := range s.curves {
		if _, ok := raster.Finite(v.F32); !ok {
			return fmt.Errorf("%w: %s is not finite: the measurement has extreme values, or %s", ErrDiverged, s.run.Computed()[i], s.tooLarge())
		}
	}
	for i := range curves {
		if _, ok := raster.Finite(s.norm.F32[i : i+1]); !ok {
			return fmt.Errorf("image %d of the batch: %w: %s", first+i+1, ErrDiverged, s.tooLarge())
		}
	}
	for _, b := range s.state {
		b.now = b.next()
	}
	for i := range curves {
		s.record(&curves[i], s.run.Steps[at], func(curve int) float64 { return float64(s.curves[curve].F32[i]) })
	}
	return nil
}
