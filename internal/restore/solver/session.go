package solver

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/restore/method"
	"ddiff/restore/onnx"
)

// divides reports whether other sessions than that of the step compute the score network.
func (s *Solver) divides() bool { return s.rt.Divides() || s.run.Grid() != nil }

// session computes a step. The score network of a divided step is in other sessions: those of another provider, or of tiles. There is then a
// part of the step before each evaluation, and one for the rest; otherwise the step is one part.
type session struct {
	network *network // nil for a step that is not divided
	parts   []part
	results []result
	// idle: Run computes nothing. The benchmark of the host sets it.
	idle bool
	// watch is that of [Solver.Watch], nil for none.
	watch func(share float64)
}

// part is one part of a step, with the names of its inputs.
type part struct {
	session *onnxruntime.Session
	*onnxruntime.Binding
	inputs []string
}

// result is that of an evaluation, an input of the parts that follow.
type result struct {
	name string
	*onnxruntime.Tensor
}

// newSession compiles a step.
func (s *Solver) newSession(m stepModel) (c *session, err error) {
	c = &session{}
	defer func() {
		if err != nil {
			c, err = nil, errors.Join(err, c.Close())
		}
	}()
	if s.divides() {
		if c.network, err = s.newNetwork(); err != nil {
			return c, err
		}
	}
	rt := s.rt
	if s.build.Form.Graph() && !s.divides() {
		rt = rt.Capturing()
	}
	for i, stage := range m.stages {
		p := part{inputs: onnx.Names(stage.Inputs)}
		if p.session, err = rt.NewSession(stage.Model, p.inputs, onnx.Names(stage.Outputs)); err != nil {
			return c, err
		}
		p.Binding, err = p.session.Bind()
		c.parts = append(c.parts, p)
		if err != nil {
			return c, err
		}
		if i == len(m.results) {
			break
		}
		for k, t := range c.network.arguments() {
			if err := p.SetOutput(k, t); err != nil {
				return c, err
			}
		}
	}
	for _, v := range m.results {
		t, err := c.last().NewHost(v)
		if err != nil {
			return c, err
		}
		c.results = append(c.results, result{v.Name, t})
	}
	return c, nil
}

// last is the part with the outputs of the step. It has all tensors.
func (c *session) last() part { return c.parts[len(c.parts)-1] }

// set binds an input of the step to the parts that have it.
func (c *session) set(name string, t *onnxruntime.Tensor) error {
	for _, p := range c.parts {
		if i := slices.Index(p.inputs, name); i >= 0 {
			if err := p.SetInput(i, t); err != nil {
				return err
			}
		}
	}
	return nil
}

// Run makes a step with the bound tensors.
func (c *session) Run(ctx context.Context) error {
	if c.idle {
		return nil
	}
	for i, r := range c.results {
		if err := c.parts[i].Run(ctx); err != nil {
			return err
		}
		watch := func(share float64) {
			if c.watch != nil {
				c.watch((float64(i) + share) / float64(len(c.results)))
			}
		}
		if err := c.network.predict(ctx, r.F32, watch); err != nil {
			return err
		}
		if err := c.set(r.name, r.Tensor); err != nil {
			return err
		}
	}
	return c.last().Run(ctx)
}

// Close releases the sessions and the tensors, which are those of the last part.
func (c *session) Close() error {
	var errs []error
	for _, p := range c.parts {
		p.Close()
	}
	for _, p := range c.parts {
		errs = append(errs, p.session.Close())
	}
	if c.network != nil {
		c.network.close()
	}
	return errors.Join(errs...)
}

// Divisible returns nil if a provider that divides steps, see onnxruntime.Runtime.Divides, can make those of the run, and
// onnxruntime.ErrFallback otherwise. It compiles nothing.
func Divisible(run *method.Run) error {
	_, err := builder{run: run, divided: true}.step(1)
	return divideError(run, onnxruntime.ProviderOpenVINO, err)
}

// divideError explains why a step cannot be divided.
func divideError(run *method.Run, provider string, err error) error {
	if err != nil && (errors.Is(err, onnx.ErrDivide) || errors.Is(err, onnx.ErrNoGradient)) {
		return fmt.Errorf("%w: %s computes only the network, and %w of method %s: %w; use --device cpu",
			onnxruntime.ErrFallback, provider, onnx.ErrDivide, run.Info.Name, err)
	}
	return err
}
