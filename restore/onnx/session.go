package onnx

import (
	"context"
	"fmt"
	"strconv"

	ort "github.com/yalue/onnxruntime_go"
)

// Session is a model that is ready to run. A Session is used by one goroutine at a time.
type Session struct {
	session *ort.DynamicAdvancedSession
	runtime *Runtime
	warm    bool
}

// NewSession prepares a model. inputs and outputs fix the order of the tensors in Run.
func (r *Runtime) NewSession(model []byte, inputs, outputs []string) (*Session, error) {
	return r.newSession(model, inputs, outputs, r.provider)
}

func (r *Runtime) newSession(model []byte, inputs, outputs []string, provider string) (*Session, error) {
	opts, err := ort.NewSessionOptions()
	if err != nil {
		return nil, fmt.Errorf("make session options: %w: %w", ErrRuntime, err)
	}
	defer opts.Destroy()
	if err := r.configure(opts, provider); err != nil {
		return nil, err
	}
	s := &Session{runtime: r}
	changed, err := keepSignals(func() error {
		var err error
		s.session, err = ort.NewDynamicAdvancedSessionWithONNXData(model, inputs, outputs, opts)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("make session: %w: %w", ErrRuntime, err)
	}
	r.restored(changed)
	return s, nil
}

func (r *Runtime) configure(opts *ort.SessionOptions, provider string) error {
	steps := []func() error{
		func() error { return opts.SetGraphOptimizationLevel(ort.GraphOptimizationLevelEnableAll) },
		func() error { return opts.SetIntraOpNumThreads(r.cfg.Threads) },
		func() error { return opts.SetInterOpNumThreads(1) },
		// Small blocks of work even out when a core is slower or shared.
		func() error { return opts.AddSessionConfigEntry("session.dynamic_block_base", "4") },
		// Results must not depend on the CPU's treatment of subnormal numbers.
		func() error { return opts.AddSessionConfigEntry("session.set_denormal_as_zero", "0") },
	}
	if provider == ProviderCUDA {
		steps = append(steps, func() error { return r.appendCUDA(opts) })
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return fmt.Errorf("configure session: %w: %w", ErrRuntime, err)
		}
	}
	return nil
}

// appendCUDA asks for full float32 arithmetic, a choice of convolution algorithm that does
// not vary between runs, and for no node to fall back to the CPU unnoticed.
func (r *Runtime) appendCUDA(opts *ort.SessionOptions) error {
	cuda, err := ort.NewCUDAProviderOptions()
	if err != nil {
		return err
	}
	defer cuda.Destroy()
	err = cuda.Update(map[string]string{
		"device_id":                 strconv.Itoa(r.cfg.Device),
		"arena_extend_strategy":     "kSameAsRequested",
		"cudnn_conv_algo_search":    "HEURISTIC",
		"do_copy_in_default_stream": "1",
		"use_tf32":                  "0",
	})
	if err != nil {
		return err
	}
	return opts.AppendExecutionProviderCUDA(cuda)
}

func (r *Runtime) restored(changed int) {
	if changed > 0 {
		r.cfg.Logger.Debug("put signal handlers back that the provider had replaced", "signals", changed)
	}
}

// Run computes the outputs. Tensors are given in the order of NewSession. The context is
// looked at before the call only: a call is one chunk of steps, the smallest unit of work.
func (s *Session) Run(ctx context.Context, inputs, outputs []*Tensor) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	in, out := values(inputs), values(outputs)
	run := func() error { return s.session.Run(in, out) }
	var err error
	if s.warm {
		err = run()
	} else {
		var changed int
		changed, err = keepSignals(run)
		s.runtime.restored(changed)
		s.warm = true
	}
	if err != nil {
		return fmt.Errorf("run: %w: %w", ErrRuntime, err)
	}
	return nil
}

func values(ts []*Tensor) []ort.Value {
	out := make([]ort.Value, len(ts))
	for i, t := range ts {
		out[i] = t.value
	}
	return out
}

// Close releases the session.
func (s *Session) Close() error {
	if s.session == nil {
		return nil
	}
	err := s.session.Destroy()
	s.session = nil
	return err
}
