package onnxruntime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"golang.org/x/sys/cpu"

	"ddiff/internal/restore/onnx/openvino"
)

// processor has the properties of the CPU on which OpenVINO depends.
type processor struct {
	avx2     bool // OpenVINO's kernels need it
	bfloat16 bool // products in bfloat16: AVX512-BF16 or AMX
}

func thisProcessor() processor {
	return processor{cpu.X86.HasAVX2, cpu.X86.HasAVX512BF16 || cpu.X86.HasAMXBF16}
}

// usable returns an error if OpenVINO cannot compute on the CPU.
func (p processor) usable() error {
	if !p.avx2 {
		return errors.New("this CPU is no x86-64 with AVX2, which OpenVINO needs")
	}
	return nil
}

// OpenVINOUsable reports whether this machine's processor can use OpenVINO.
func OpenVINOUsable() bool { return thisProcessor().usable() == nil }

// precisions are those in which OpenVINO computes. On a CPU without products in bfloat16 it would use float32 instead.
func (p processor) precisions() []Precision {
	if p.bfloat16 {
		return []Precision{FP32, BF16}
	}
	return []Precision{FP32}
}

// openOpenVINO loads the library and computes a small network with it.
func (r *Runtime) openOpenVINO() error {
	r.device = Device{Provider: ProviderOpenVINO}
	err := r.loadOpenVINO()
	if err == nil {
		err = r.probeOpenVINO()
	}
	if err != nil {
		return fmt.Errorf("use provider %s: %w: %w", ProviderOpenVINO, ErrProvider, err)
	}
	return nil
}

func (r *Runtime) loadOpenVINO() error {
	if r.cfg.OpenVINO == "" {
		return errors.New("it is not installed; run: ddiff runtime install --ep openvino")
	}
	if err := thisProcessor().usable(); err != nil {
		return err
	}
	err := preserveStack(func() (err error) {
		r.openVINO, err = openvino.Load(r.cfg.OpenVINO)
		return err
	})
	if err != nil {
		return lineError{err}
	}
	return nil
}

// openVINOTolerances are the largest differences of OpenVINO from the CPU provider in the network of the probe, as shares of the largest
// result. On an Intel Xeon with AMX they are 3.5e-7 and 2.7e-3.
var openVINOTolerances = map[Precision]float64{FP32: 1e-4, BF16: 0.02}

// probeOpenVINO compares a small network with the CPU provider, in each precision: another version of the library, or another
// processor, might compute something else.
func (r *Runtime) probeOpenVINO() error {
	want, err := runProbe(r.NewSession)
	if err != nil {
		return err
	}
	for _, p := range r.precisions() {
		got, err := runProbe(func(model []byte, inputs, outputs []string) (*Session, error) {
			return r.NewNetworkSession(model, inputs, outputs, p)
		})
		if err == nil {
			err = agree(got, want, openVINOTolerances[p])
		}
		if err != nil {
			return fmt.Errorf("compare a small network in %s with the CPU provider: %w", p, err)
		}
	}
	return nil
}

// openAlternative opens OpenVINO beside the CPU provider, if it is usable.
func (r *Runtime) openAlternative() (*Runtime, error) {
	cfg := r.cfg
	cfg.Provider = ProviderOpenVINO
	other, err := start(cfg)
	if err != nil {
		if r.cfg.Unusable != nil {
			r.cfg.Unusable(err)
		}
		return nil, err
	}
	other.shared = true
	return other, nil
}

// Alternative returns the runtime of another provider on the same device, which may be faster for a network, or nil: with
// ProviderAuto on the CPU and a usable OpenVINO, it computes with that. The first call opens it, and Close of r closes it.
func (r *Runtime) Alternative() *Runtime {
	if r.alternative == nil {
		return nil
	}
	other, _ := r.alternative() // Unusable has the error
	return other
}

// Unusable returns the reason why there is no Alternative although Config names OpenVINO, or nil.
func (r *Runtime) Unusable() error {
	if r.alternative == nil {
		return nil
	}
	_, err := r.alternative()
	return err
}

// openVINOHints are the names of the precisions in OpenVINO.
var openVINOHints = map[Precision]string{FP32: "f32", BF16: "bf16"}

// openVINOSettings are the properties of OpenVINO's CPU device, without the number of threads.
func openVINOSettings(p Precision) map[string]string {
	return map[string]string{
		"INFERENCE_PRECISION_HINT": openVINOHints[p],
		"PERFORMANCE_HINT":         "LATENCY",
		// Threads that are bound to cores would share them with those of other workers on the machine.
		"ENABLE_CPU_PINNING": "NO",
	}
}

// network is a score network that OpenVINO computes.
type network struct{ *openvino.Network }

// compileOpenVINO compiles a score network with fixed dimensions. It returns ErrFallback if only the CPU provider supports the model.
func (r *Runtime) compileOpenVINO(model []byte, inputs, outputs []string, p Precision) (*Session, error) {
	if _, ok := openVINOHints[p]; !ok {
		return nil, fmt.Errorf("%w: openvino does not compute in %s", ErrPrecision, p)
	}
	settings := openVINOSettings(p)
	settings["INFERENCE_NUM_THREADS"] = strconv.Itoa(r.cfg.Threads)
	s := &Session{runtime: r, device: r.device}
	err := s.make(func() (program, error) {
		compiled, err := openvino.Compile(model, slices.Concat(inputs, outputs), settings)
		if err != nil {
			return nil, r.device.wrapError("make session", err)
		}
		return network{compiled}, nil
	})
	if err == nil || errors.Is(err, ErrMemory) {
		return s, err
	}
	plain, fault := r.NewSession(model, inputs, outputs)
	if fault != nil {
		return nil, fault // of the model
	}
	return nil, errors.Join(fmt.Errorf("%w: %w; use --device cpu", ErrFallback, err), plain.Close())
}

// run computes an evaluation, which the end of a context does not interrupt.
func (n network) run(_ context.Context, inputs, outputs []*Tensor) error {
	var arrays []openvino.Array
	for _, t := range slices.Concat(inputs, outputs) {
		arrays = append(arrays, openvino.Array{Dims: t.dims, F32: t.F32, I64: t.I64})
	}
	return n.Run(arrays)
}

func (n network) close() error {
	n.Close()
	return nil
}

// Divides reports whether the provider computes the score network only, in sessions of its own, see Graph.Divide and
// NewNetworkSession. All other sessions are those of the CPU provider.
func (r *Runtime) Divides() bool { return r.device.Provider == ProviderOpenVINO }

// NewNetworkSession is NewSession for a score network, in a precision of the runtime. On a provider that does not divide
// graphs, the model has the precision.
func (r *Runtime) NewNetworkSession(model []byte, inputs, outputs []string, p Precision) (*Session, error) {
	if !r.Divides() {
		return r.newSession(model, inputs, outputs, target{device: r.device, threads: r.cfg.Threads})
	}
	return r.compileOpenVINO(model, inputs, outputs, p)
}
