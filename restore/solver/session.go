package solver

import (
	"context"
	"errors"
	"fmt"

	"ddiff/restore/method"
	"ddiff/restore/onnx"
	"ddiff/restore/onnx/onnxruntime"
)

// session computes a step. The inputs are those of its model, in order.
type session interface {
	Run(ctx context.Context, inputs, outputs []*onnxruntime.Tensor) error
	Close() error
}

// divides reports whether other sessions than that of the step compute the score network.
func (s *Solver) divides() bool { return s.rt.Divides() || s.run.Grid() != nil }

// divided is the session of one step whose score network other sessions compute: those of another provider, or of tiles. It makes a call
// for each part of the step before an evaluation, then the evaluation, and a call for the rest.
type divided struct {
	network network
	parts   []part
	results []*onnxruntime.Tensor // of the evaluations
}

// part is one part of a step.
type part struct {
	session *onnxruntime.Session
	inputs  []*onnxruntime.Tensor
}

// newDivided compiles a divided step. inputs are the tensors of its model by name; it adds those of the evaluations.
func (s *Solver) newDivided(m stepModel, inputs map[string]*onnxruntime.Tensor) (d *divided, err error) {
	d = &divided{}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	if d.network, err = s.newNetwork(); err != nil {
		return d, err
	}
	if d.results, err = onnxruntime.NewTensors(m.results...); err != nil {
		return d, err
	}
	for i, v := range m.results {
		inputs[v.Name] = d.results[i]
	}
	for _, stage := range m.stages {
		var p part
		var in, out []string
		for _, v := range stage.Inputs {
			in = append(in, v.Name)
			p.inputs = append(p.inputs, inputs[v.Name])
		}
		for _, v := range stage.Outputs {
			out = append(out, v.Name)
		}
		if p.session, err = s.rt.NewSession(stage.Model, in, out); err != nil {
			return d, err
		}
		d.parts = append(d.parts, p)
	}
	return d, nil
}

// Run makes a step. The parts read the tensors of newDivided.
func (d *divided) Run(ctx context.Context, _, outputs []*onnxruntime.Tensor) error {
	for i, p := range d.parts {
		if i == len(d.parts)-1 {
			return p.session.Run(ctx, p.inputs, outputs)
		}
		if err := p.session.Run(ctx, p.inputs, d.network.arguments()); err != nil {
			return err
		}
		if err := d.network.predict(ctx, d.results[i].F32); err != nil {
			return err
		}
	}
	return nil
}

// Close releases the sessions and the tensors.
func (d *divided) Close() error {
	var errs []error
	for _, p := range d.parts {
		errs = append(errs, p.session.Close())
	}
	if d.network != nil {
		d.network.close()
	}
	onnxruntime.CloseTensors(d.results)
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
