package solver

import (
	"context"
	"errors"
	"fmt"

	"ddiff/restore/method"
	"ddiff/restore/onnx"
	"ddiff/restore/onnx/onnxruntime"
)

// divides reports whether other sessions than that of the step compute the score network.
func (s *Solver) divides() bool { return s.rt.Divides() || s.run.Grid() != nil }

// session computes a step. The score network of a divided step is in other sessions: those of another provider, or of tiles. There is then a
// part of the step before each evaluation, and one for the rest; otherwise the step is one part.
type session struct {
	network *network // nil for a step that is not divided
	parts   []part
	results []*onnxruntime.Tensor // of the evaluations
	// idle: Run computes nothing. The benchmark of the host sets it.
	idle bool
}

// part is one part of a step.
type part struct {
	session *onnxruntime.Session
	inputs  []*onnxruntime.Tensor
}

// newSession compiles a step. inputs are the tensors of its model by name; it adds those of the evaluations.
func (s *Solver) newSession(m stepModel, inputs map[string]*onnxruntime.Tensor) (c *session, err error) {
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
	if c.results, err = onnxruntime.NewTensors(m.results...); err != nil {
		return c, err
	}
	for i, v := range m.results {
		inputs[v.Name] = c.results[i]
	}
	for _, stage := range m.stages {
		var p part
		for _, v := range stage.Inputs {
			p.inputs = append(p.inputs, inputs[v.Name])
		}
		if p.session, err = s.rt.NewSession(stage.Model, onnx.Names(stage.Inputs), onnx.Names(stage.Outputs)); err != nil {
			return c, err
		}
		c.parts = append(c.parts, p)
	}
	return c, nil
}

// Run makes a step. The parts read the tensors of newSession.
func (c *session) Run(ctx context.Context, outputs []*onnxruntime.Tensor) error {
	if c.idle {
		return nil
	}
	for i, result := range c.results {
		if err := c.parts[i].session.Run(ctx, c.parts[i].inputs, c.network.arguments()); err != nil {
			return err
		}
		if err := c.network.predict(ctx, result.F32); err != nil {
			return err
		}
	}
	last := c.parts[len(c.results)]
	return last.session.Run(ctx, last.inputs, outputs)
}

// Close releases the sessions and the tensors.
func (c *session) Close() error {
	var errs []error
	for _, p := range c.parts {
		errs = append(errs, p.session.Close())
	}
	if c.network != nil {
		c.network.close()
	}
	onnxruntime.CloseTensors(c.results)
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
