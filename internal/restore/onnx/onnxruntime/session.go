package onnxruntime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	ort "github.com/yalue/onnxruntime_go"

	"ddiff/restore/onnx"
)

// Session is a compiled model. One goroutine at a time uses it.
type Session struct {
	program program // nil after Close
	runtime *Runtime
	device  Device // that computes
	warm    bool
	calls   atomic.Int64    // of a model that is recorded
	ports   [2][]onnx.Value // inputs and outputs of a model that is recorded
	plain   *Session        // of the same model without a record, nil for one that is not recorded
}

// program is the compiled model in one of the libraries.
type program interface {
	run(ctx context.Context, inputs, outputs []*Tensor) error
	close() error
}

// NewSession compiles a model. inputs and outputs set the order of the tensors in Run. It returns ErrFallback
// if a node would run on the CPU instead of the GPU.
func (r *Runtime) NewSession(model []byte, inputs, outputs []string) (*Session, error) {
	return r.newSession(model, inputs, outputs, target{device: r.rest(), threads: r.cfg.Threads})
}

// NewSerialSession is NewSession on the CPU with one thread per operation. Its results depend neither on the device nor on the division of work among
// threads: some operations of the runtime, such as Log, round the borders between the threads' parts differently. It waits for no session on a GPU.
func (r *Runtime) NewSerialSession(model []byte, inputs, outputs []string) (*Session, error) {
	cpu := *r
	cpu.device, cpu.thread = Device{Provider: ProviderCPU}, nil
	return cpu.newSession(model, inputs, outputs, target{device: cpu.device, threads: 1})
}

// rest is the device of everything but networks.
func (r *Runtime) rest() Device {
	if r.Divides() {
		return Device{Provider: ProviderCPU}
	}
	return r.device
}

// target is how a session computes.
type target struct {
	device  Device
	threads int
}

func (r *Runtime) newSession(model []byte, inputs, outputs []string, t target) (*Session, error) {
	opts, err := ort.NewSessionOptions()
	if err != nil {
		return nil, t.device.wrapError("make session options", err)
	}
	defer opts.Destroy()
	var ports [2][]onnx.Value
	if r.capture {
		if ports, err = portsOf(model, inputs, outputs); err != nil {
			return nil, t.device.wrapError("make session", err)
		}
		r = r.capturing(ports[bindOutput] != nil)
	}
	s := &Session{runtime: r, device: t.device, ports: ports}
	if r.capture {
		if s.plain, err = r.capturing(false).newSession(model, inputs, outputs, t); err != nil {
			return nil, err
		}
	}
	err = s.make(func() (program, error) {
		if err := r.configure(opts, model, t); err != nil {
			return nil, t.device.wrapError("configure session", err)
		}
		made, err := create(model, inputs, outputs, opts)
		if err != nil {
			return nil, t.device.wrapError("make session", err)
		}
		return ortProgram{made, inputs, outputs}, nil
	})
	if err != nil && s.plain != nil {
		r.unrecorded(t.device, err)
		return s.plain, nil
	}
	return s, r.refuseFallback(err)
}

// created says that a session was made in this process; the lock is held while the first one is.
var created struct {
	sync.Mutex
	once bool
}

// create makes the first session of the process alone: ONNX Runtime adds the domain of our operations to a list of the process, and fails where two sessions
// find it missing (CreateCustomRegistry in its custom_ops.cc, 1.30).
func create(model []byte, inputs, outputs []string, opts *ort.SessionOptions) (*ort.DynamicAdvancedSession, error) {
	created.Lock()
	if created.once {
		created.Unlock()
		return ort.NewDynamicAdvancedSessionWithONNXData(model, inputs, outputs, opts)
	}
	defer created.Unlock()
	s, err := ort.NewDynamicAdvancedSessionWithONNXData(model, inputs, outputs, opts)
	created.once = err == nil
	return s, err
}

// make compiles the model by f on the session's thread.
func (s *Session) make(f func() (program, error)) error {
	return s.runtime.thread.do(func() error {
		return s.runtime.preserve(func() (err error) {
			s.program, err = f()
			return err
		})
	})
}

func (r *Runtime) configure(opts *ort.SessionOptions, model []byte, t target) error {
	steps := []func() error{
		func() error { return opts.SetGraphOptimizationLevel(ort.GraphOptimizationLevelEnableAll) },
		func() error { return opts.SetIntraOpNumThreads(t.threads) },
		func() error { return opts.SetInterOpNumThreads(1) },
		func() error { return r.appendProvider(opts, t, model) },
		func() error { return addOperations(opts) },
		// Weights that stay in files have absolute paths, see modelfile.ReadModelBeside.
		func() error {
			return opts.AddSessionConfigEntry("session.model_external_initializers_file_folder_path", "/")
		},
		// Failures are returned as errors; do not print them too.
		func() error { return opts.SetLogSeverityLevel(ort.LoggingLevelFatal) },
	}
	entries := r.sessionSettings(t.device)
	for _, k := range slices.Sorted(maps.Keys(entries)) {
		steps = append(steps, func() error { return opts.AddSessionConfigEntry(k, entries[k]) })
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// preserve runs f, and restores the signal handlers or the signal stack that f changes. The CPU provider installs none: sessions on it are made, and make
// their first calls, beside each other.
func (r *Runtime) preserve(f func() error) error {
	switch r.device.Provider {
	case ProviderCPU:
		return f()
	case ProviderOpenVINO:
		return preserveStack(f)
	}
	changed, err := preserveSignals(f)
	if changed > 0 {
		r.cfg.Logger.Debug("restored signal handlers that the provider had replaced", "signals", changed)
	}
	return err
}

// Run computes the outputs. Tensors are in the order of NewSession. It returns ErrMemory, ErrDevice and ErrDeviceLost.
//
// The end of ctx terminates the call, which then returns ctx's error and its cause; the outputs are undefined. The
// library terminates between two nodes of the graph, also inside a loop: a kernel that hangs is not interrupted.
//
// The caller supplies all outputs, as float32 or int64: the binding copies only half of a float16 output that it
// allocates itself (createTensorFromOrtValue of onnxruntime_go, up to v1.35.0). A GPU copies all tensors at each call, see Bind.
func (s *Session) Run(ctx context.Context, inputs, outputs []*Tensor) error {
	for i, t := range slices.Concat(inputs, outputs) {
		if t == nil || t.value == nil {
			return fmt.Errorf("run: tensor %d is nil or closed", i+1)
		}
	}
	err := s.call(ctx, func() error { return s.program.run(ctx, inputs, outputs) })
	if err == nil && s.device.gpu() {
		s.runtime.traffic.add(inputs, outputs)
	}
	return err
}

// call runs the model by run on the session's thread.
func (s *Session) call(ctx context.Context, run func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.program == nil {
		return errors.New("run: the session is closed")
	}
	do := s.runtime.thread.do
	if s.plain != nil && s.calls.Add(1) <= recordChecks {
		do = s.runtime.thread.alone
	}
	err := do(func() error {
		if s.warm {
			return run()
		}
		s.warm = true
		return s.runtime.preserve(run)
	})
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("run: terminated: %w", contextError(ctx))
	}
	return s.device.wrapError("run", err)
}

// ortProgram is a session of ONNX Runtime.
type ortProgram struct {
	session         *ort.DynamicAdvancedSession
	inputs, outputs []string
}

func (p ortProgram) run(ctx context.Context, inputs, outputs []*Tensor) error {
	// The binding holds C pointers to the tensors' elements, which the garbage collector does not see.
	defer runtime.KeepAlive(inputs)
	defer runtime.KeepAlive(outputs)
	options, release, err := terminatedBy(ctx)
	if err != nil {
		return err
	}
	defer release()
	return p.session.RunWithOptions(values(inputs), values(outputs), options)
}

func (p ortProgram) close() error { return p.session.Destroy() }

// terminatedBy returns options that terminate a call when ctx ends. The caller calls release after the call.
func terminatedBy(ctx context.Context) (options *ort.RunOptions, release func(), err error) {
	if options, err = ort.NewRunOptions(); err != nil {
		return nil, nil, err
	}
	set := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(set)
		_ = options.Terminate() // fails only for nil options
	})
	return options, func() {
		if !stop() {
			<-set
		}
		_ = options.Destroy() // returns nil
	}, nil
}

// contextError returns the error of an ended context, with its cause.
func contextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
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
	if s.program == nil {
		return nil
	}
	if s.plain != nil {
		defer s.plain.Close()
	}
	err := s.runtime.thread.do(s.program.close)
	s.program = nil
	return err
}
