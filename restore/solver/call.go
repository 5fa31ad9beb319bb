package solver

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ddiff/restore/onnx"
	"ddiff/restore/raster"
)

// call is a compiled chunk: a call of the runtime makes up to k steps.
type call struct {
	form   Form
	k      int
	own    map[string]*onnx.Tensor // trip and the inputs of the steps
	inputs []*onnx.Tensor          // in the order of the session
	curves []onnx.Value
	sess   *onnx.Session
}

// sharedNames are the inputs that all calls of a solver read.
var sharedNames = []string{"x", "u", "x_before", "z_before", "y", "draws"}

// compile builds and compiles the model of k steps, and the tensors that are not there yet.
func (s *Solver) compile(form Form, k int) (c *call, err error) {
	b := builder{s.cfg, s.op, s.prior, s.build}
	b.build.Form = form
	m, err := b.chunk(s.n, k)
	if err != nil {
		return nil, err
	}
	c = &call{form: form, k: k, own: map[string]*onnx.Tensor{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
			c = nil
		}
	}()
	var names []string
	for _, v := range m.inputs {
		tensors := c.own
		if slices.Contains(sharedNames, v.Name) {
			tensors = s.in
		}
		t, ok := tensors[v.Name]
		if !ok {
			if t, err = onnx.NewTensor(v.DType, v.Dims...); err != nil {
				return c, fmt.Errorf("input %s: %w", v.Name, err)
			}
			tensors[v.Name] = t
		}
		names = append(names, v.Name)
		c.inputs = append(c.inputs, t)
	}
	if s.state == nil {
		if s.state, err = onnx.NewTensors(m.outputs[:4]...); err != nil {
			return c, err
		}
	}
	c.curves = m.outputs[4:]
	if c.sess, err = s.rt.NewSession(m.model, names, outputNames); err != nil {
		return c, fmt.Errorf("compile %s for %s, batch %d: %w", s.cfg.Method, s.op.Task, s.n, err)
	}
	return c, nil
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

// run makes count steps from step at, with the noise of the whole chunk.
func (s *Solver) run(ctx context.Context, at, count int, noise []float32, curves []Curves) error {
	if count == s.k || s.main.form == FormLoop {
		return s.advance(ctx, s.main, at, count, noise, curves)
	}
	// A model without a loop makes all its steps or none: the rest of the run is made by one
	// that makes a single step.
	if s.single == nil {
		c, err := s.compile(FormSingle, 1)
		if err != nil {
			return err
		}
		s.single = c
	}
	size := len(noise) / s.k
	for j := range count {
		if err := s.advance(ctx, s.single, at+j, 1, noise[j*size:(j+1)*size], curves); err != nil {
			return err
		}
	}
	return nil
}

// advance makes count steps from step at in one call, and moves the new state to the inputs.
func (s *Solver) advance(ctx context.Context, c *call, at, count int, noise []float32, curves []Curves) error {
	s.fill(c, at, count, noise)
	norms := make([]onnx.Value, len(c.curves))
	for i, v := range c.curves {
		norms[i] = onnx.Value{Name: v.Name, DType: v.DType, Dims: []int{count, s.n}}
	}
	values, err := onnx.NewTensors(norms...)
	if err != nil {
		return err
	}
	defer onnx.CloseTensors(values)
	if err := c.sess.Run(ctx, c.inputs, slices.Concat(s.state, values)); err != nil {
		return err
	}
	for i, name := range []string{"x", "u", "x_before", "z_before"} {
		copy(s.in[name].F32, s.state[i].F32)
	}
	for _, v := range values {
		if _, ok := raster.Finite(v.F32); !ok {
			return fmt.Errorf("%w: a norm is not finite: the step size gamma0 %g is too large, or the measurement has extreme values", ErrDiverged, s.cfg.Gamma0)
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
func (s *Solver) fill(c *call, at, count int, noise []float32) {
	if c.form == FormLoop {
		c.own["trip"].I64[0] = int64(count)
		copy(c.own["noise"].F32, noise)
		for j := range count {
			c.own["time"].I64[j] = int64(s.steps[at+j].t)
			copy(c.own["scalars"].F32[j*scalars:], s.table[at+j][:])
		}
		return
	}
	size := len(noise) / c.k
	for j := range count {
		c.own[stepInput("time", j)].I64[0] = int64(s.steps[at+j].t)
		copy(c.own[stepInput("scalars", j)].F32, s.table[at+j][:])
		copy(c.own[stepInput("noise", j)].F32, noise[j*size:])
	}
}
