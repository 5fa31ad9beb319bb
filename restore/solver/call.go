package solver

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ddiff/restore/method"
	"ddiff/restore/onnx"
	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/raster"
)

// call is a compiled chunk: a call of the runtime makes up to k steps.
type call struct {
	form   Form
	k      int
	digest string                         // of the model
	own    map[string]*onnxruntime.Tensor // the inputs that other calls do not share
	inputs []*onnxruntime.Tensor          // in the order of the session
	curves []onnx.Value
	sess   session
}

// model builds the model of k steps of a run.
func (s *Solver) model(run *method.Run, form Form, k int) (chunk, error) {
	b := builder{run, s.build, unrolled(s.rt.Provider(), s.build.Form), s.divides(), run.Prior.Block(s.rt)}
	b.build.Form = form
	m, err := b.chunk(s.n, k)
	if b.divided {
		err = divideError(run, s.rt.Provider(), err)
	}
	return m, err
}

// compile builds and compiles the model of k steps and allocates its missing tensors.
func (s *Solver) compile(form Form, k int) (c *call, err error) {
	m, err := s.model(s.run, form, k)
	if err != nil {
		return nil, err
	}
	c = &call{form: form, k: k, digest: m.digest(), own: map[string]*onnxruntime.Tensor{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
			c = nil
		}
	}()
	var names []string
	for _, v := range m.inputs {
		tensors := c.own
		if s.shared(v.Name) {
			tensors = s.in
		}
		t, ok := tensors[v.Name]
		if !ok {
			if t, err = onnxruntime.NewTensor(v.DType, v.Dims...); err != nil {
				return c, fmt.Errorf("input %s: %w", v.Name, err)
			}
			tensors[v.Name] = t
		}
		names = append(names, v.Name)
		c.inputs = append(c.inputs, t)
	}
	tensors := len(s.run.Info.State)
	if s.state == nil {
		if s.state, err = onnxruntime.NewTensors(m.outputs[:tensors]...); err != nil {
			return c, err
		}
	}
	c.curves = m.outputs[tensors:]
	if c.sess, err = s.session(m, names, c.inputs); err != nil {
		return c, fmt.Errorf("compile %s for %s, batch %d: %w", s.run.Info.Name, s.run.Operator.Task, s.n, err)
	}
	return c, nil
}

// shared reports whether all calls of a solver read an input.
func (s *Solver) shared(name string) bool {
	return name == inputMeasurement || name == inputMask ||
		slices.ContainsFunc(s.run.Info.State, func(t method.Tensor) bool { return name == stateInput(t.Name) })
}

// session compiles a chunk.
func (s *Solver) session(m chunk, names []string, tensors []*onnxruntime.Tensor) (session, error) {
	if !s.divides() {
		var outputs []string
		for _, v := range m.outputs {
			outputs = append(outputs, v.Name)
		}
		sess, err := s.rt.NewSession(m.model, names, outputs)
		if err != nil {
			return nil, err // not a nil pointer in an interface
		}
		return sess, nil
	}
	inputs := map[string]*onnxruntime.Tensor{}
	for i, name := range names {
		inputs[name] = tensors[i]
	}
	sess, err := s.newDivided(m, inputs)
	if err != nil {
		return nil, err
	}
	return sess, nil
}

func (c *call) close() error {
	if c == nil {
		return nil
	}
	for _, t := range c.own {
		t.Close()
	}
	if c.sess == nil {
		return nil
	}
	return c.sess.Close()
}

// makeSteps makes count steps from step at, with the noise of the whole chunk, one slice per draw.
func (s *Solver) makeSteps(ctx context.Context, at, count int, noise [][]float32, curves []Curves) error {
	if count == s.k || s.main.form == FormLoop {
		return s.advance(ctx, s.main, at, count, noise, curves)
	}
	// A model without a loop makes a fixed number of steps: a model of one step makes the rest of the run.
	if s.single == nil {
		c, err := s.compile(FormSingle, 1)
		if err != nil {
			return err
		}
		s.single = c
	}
	for j := range count {
		step := make([][]float32, len(noise))
		for d, all := range noise {
			size := len(all) / s.k
			step[d] = all[j*size : (j+1)*size]
		}
		if err := s.advance(ctx, s.single, at+j, 1, step, curves); err != nil {
			return err
		}
	}
	return nil
}

// advance makes count steps from step at in one call, and moves the new state to the inputs.
func (s *Solver) advance(ctx context.Context, c *call, at, count int, noise [][]float32, curves []Curves) error {
	s.fill(c, at, count, noise)
	outs := make([]onnx.Value, len(c.curves))
	for i, v := range c.curves {
		outs[i] = onnx.Value{Name: v.Name, DType: v.DType, Dims: []int{count, s.n}}
	}
	values, err := onnxruntime.NewTensors(outs...)
	if err != nil {
		return err
	}
	defer onnxruntime.CloseTensors(values)
	if err := c.sess.Run(ctx, c.inputs, slices.Concat(s.state, values)); err != nil {
		return err
	}
	for i, t := range s.run.Info.State {
		copy(s.in[stateInput(t.Name)].F32, s.state[i].F32)
	}
	for i, v := range values {
		if _, ok := raster.Finite(v.F32); !ok {
			return fmt.Errorf("%w: %s is not finite: the measurement has extreme values, or %s", ErrDiverged, s.run.Computed()[i], s.tooLarge())
		}
	}
	for i := range curves {
		s.record(&curves[i], at, count, func(curve, step int) float64 {
			return float64(values[curve].F32[step*s.n+i])
		})
	}
	return nil
}

// fill gives a call the inputs of its steps.
func (s *Solver) fill(c *call, at, count int, noise [][]float32) {
	if c.form == FormLoop {
		c.own[inputTrip].I64[0] = int64(count)
		for d, draw := range s.run.Info.Draws {
			copy(c.own[drawInput(draw.Name)].F32, noise[d])
		}
		for j := range count {
			row := s.run.Row(at + j)
			c.own[inputTime].I64[j] = int64(s.run.Steps[at+j].Time)
			copy(c.own[inputScalars].F32[j*len(row):], row)
		}
		return
	}
	for j := range count {
		c.own[stepInput(inputTime, j)].I64[0] = int64(s.run.Steps[at+j].Time)
		copy(c.own[stepInput(inputScalars, j)].F32, s.run.Row(at+j))
		for d, draw := range s.run.Info.Draws {
			size := len(noise[d]) / c.k
			copy(c.own[stepInput(drawInput(draw.Name), j)].F32, noise[d][j*size:(j+1)*size])
		}
	}
}
