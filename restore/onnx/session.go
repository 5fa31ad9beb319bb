package onnx

import (
	"context"
	"fmt"
	"runtime"

	ort "github.com/yalue/onnxruntime_go"
)

// Session is a model that is ready to run. A Session is used by one goroutine at a time.
type Session struct {
	session *ort.DynamicAdvancedSession
	runtime *Runtime
	warm    bool
}

// NewSession prepares a model. inputs and outputs fix the order of the tensors in Run.
// ErrFallback: on a GPU, a node of the model would run on the CPU; the message names it.
func (r *Runtime) NewSession(model []byte, inputs, outputs []string) (*Session, error) {
	s, err := r.compile(model, inputs, outputs, sessionSettings(r.device.gpu()), "")
	if r.device.gpu() && refusedFallback(err) {
		return r.fallback(model, inputs, outputs)
	}
	return s, err
}

// compile makes a session with the given configuration entries. profile, if not empty, is
// the beginning of the name of a file to which the session writes when it is closed which
// node ran where.
func (r *Runtime) compile(model []byte, inputs, outputs []string, entries map[string]string, profile string) (*Session, error) {
	opts, err := ort.NewSessionOptions()
	if err != nil {
		return nil, failed("make session options", err)
	}
	defer opts.Destroy()
	s := &Session{runtime: r}
	err = r.thread.do(func() error {
		if err := r.configure(opts, model, entries, profile); err != nil {
			return failed("configure session", err)
		}
		changed, err := keepSignals(func() error {
			var err error
			s.session, err = ort.NewDynamicAdvancedSessionWithONNXData(model, inputs, outputs, opts)
			return err
		})
		r.restored(changed)
		return failed("make session", err)
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (r *Runtime) configure(opts *ort.SessionOptions, model []byte, entries map[string]string, profile string) error {
	steps := []func() error{
		func() error { return opts.SetGraphOptimizationLevel(ort.GraphOptimizationLevelEnableAll) },
		func() error { return opts.SetIntraOpNumThreads(r.cfg.Threads) },
		func() error { return opts.SetInterOpNumThreads(1) },
		func() error { return r.appendProvider(opts, r.device, model) },
	}
	for _, k := range sortedKeys(entries) {
		steps = append(steps, func() error { return opts.AddSessionConfigEntry(k, entries[k]) })
	}
	if r.device.gpu() {
		// The guard's refusal comes as an error; the library need not print it too.
		steps = append(steps, func() error { return opts.SetLogSeverityLevel(ort.LoggingLevelFatal) })
	}
	if profile != "" {
		steps = append(steps, func() error { return opts.EnableProfiling(profile) })
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (r *Runtime) restored(changed int) {
	if changed > 0 {
		r.cfg.Logger.Debug("put signal handlers back that the provider had replaced", "signals", changed)
	}
}

// Run computes the outputs. Tensors are given in the order of NewSession. The context is
// looked at before the call only: a call is one chunk of steps, the smallest unit of work.
// ErrMemory: there is no memory for it.
//
// All outputs are given by the caller: the binding copies half of an output of float16 that
// it has to make itself (createTensorFromOrtValue of onnxruntime_go, up to v1.35.0), and so
// inputs and outputs of a model are float32 or int64. Its I/O bindings are not used: until
// v1.30.1 GetBoundOutputNames mixed up the names of several outputs, and an input that is
// bound is copied once, when it is bound.
func (s *Session) Run(ctx context.Context, inputs, outputs []*Tensor) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	in, err := values(inputs)
	if err != nil {
		return err
	}
	out, err := values(outputs)
	if err != nil {
		return err
	}
	// The binding keeps C pointers to the tensors' elements, which the collector does not see.
	defer runtime.KeepAlive(inputs)
	defer runtime.KeepAlive(outputs)
	err = s.runtime.thread.do(func() error {
		run := func() error { return s.session.Run(in, out) }
		if s.warm {
			return run()
		}
		changed, err := keepSignals(run)
		s.runtime.restored(changed)
		s.warm = true
		return err
	})
	return failed("run", err)
}

func values(ts []*Tensor) ([]ort.Value, error) {
	out := make([]ort.Value, len(ts))
	for i, t := range ts {
		if t == nil || t.value == nil {
			return nil, fmt.Errorf("run: tensor %d is closed, or none", i+1)
		}
		out[i] = t.value
	}
	return out, nil
}

// Close releases the session.
func (s *Session) Close() error {
	if s.session == nil {
		return nil
	}
	err := s.runtime.thread.do(s.session.Destroy)
	s.session = nil
	return err
}
