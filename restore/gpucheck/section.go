package gpucheck

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/prior"
	"ddiff/restore/prior/randomnet"
	"ddiff/restore/solver"
)

// The names of the networks.
const (
	bundledNetwork = "bundled"
	randomNetwork  = "random"
)

// The precisions of a comparison.
const (
	fp32 = "fp32"
	tf32 = "tf32" // float32 whose products round their factors to 10 bits; CUDA only
	fp16 = "fp16"
)

// runSection runs a section that computes, in this process, and records its results in r.
func runSection(ctx context.Context, name string, cfg Config, r *Report) error {
	run, ok := map[string]func(context.Context, *session, *Report) error{
		"provider": openProvider,
		"network":  compareNetworks,
		"tasks":    compareTasks,
		"speed":    measureSpeed,
	}[name]
	if !ok {
		return fmt.Errorf("%w: section %q does not exist or runs no computation", ErrConfig, name)
	}
	s, err := openSession(cfg)
	if err != nil {
		return err
	}
	return errors.Join(run(ctx, s, r), s.close())
}

// session holds the open runtimes: the CPU as the reference, and the device in each precision.
type session struct {
	cfg      Config
	cpu      *onnxruntime.Runtime
	variants []variant
}

// variant is the device with one precision.
type variant struct {
	name  string
	rt    *onnxruntime.Runtime
	build solver.Build
}

func openSession(cfg Config) (s *session, err error) {
	s = &session{cfg: cfg}
	if s.cpu, err = onnxruntime.Open(onnxruntime.Config{Library: cfg.Library, Provider: onnxruntime.ProviderCPU, Threads: cfg.Threads}); err != nil {
		return nil, err
	}
	d := cfg.device()
	open := func(o onnxruntime.Options) (*onnxruntime.Runtime, error) {
		return s.cpu.With(onnxruntime.Config{Provider: d.Provider, Device: d.Index, Plugin: cfg.Plugin, Threads: cfg.Threads, Options: o})
	}
	plain, err := open(onnxruntime.Options{})
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.variants = []variant{{fp32, plain, solver.Build{Precision: onnxruntime.FP32}}}
	// TensorRT switches TF32 for the whole process, so only CUDA has the variant.
	if d.Provider == onnxruntime.ProviderCUDA {
		rounded, err := open(onnxruntime.Options{TF32: true})
		if err != nil {
			return nil, errors.Join(err, s.close())
		}
		s.variants = append(s.variants, variant{tf32, rounded, solver.Build{Precision: onnxruntime.FP32}})
	}
	if plain.Alone(onnxruntime.FP16) {
		s.variants = append(s.variants, variant{fp16, plain, solver.Build{Precision: onnxruntime.FP16}})
	}
	return s, nil
}

func (s *session) close() error {
	closed := map[*onnxruntime.Runtime]bool{}
	var err error
	for _, v := range s.variants {
		if !closed[v.rt] {
			closed[v.rt] = true
			err = errors.Join(err, v.rt.Close())
		}
	}
	return errors.Join(err, s.cpu.Close())
}

// network opens a network by name and returns the side of its images in pixels.
func (s *session) network(name string) (*prior.Prior, int, error) {
	if name == bundledNetwork {
		p, err := prior.Open(prior.Bundled)
		return p, s.cfg.Size, err
	}
	n, err := randomnet.New(s.cfg.Random)
	if err != nil {
		return nil, 0, err
	}
	data, err := n.ONNX()
	if err != nil {
		return nil, 0, err
	}
	p, err := prior.Load(randomNetwork, data)
	return p, s.cfg.Random.Size, err
}

// unsupported reports whether err means that the device has no float16, and records that. TF32 never fails: devices
// without it compute products in float32.
func (r *Report) unsupported(v variant, err error) bool {
	if err == nil || v.name != fp16 || !strings.Contains(err.Error(), "requires f16 but the device does not support it") {
		return false
	}
	r.Unsupported = map[string]string{fp16: "the device has no float16"}
	return true
}

// openProvider records the provider that was opened.
func openProvider(_ context.Context, s *session, r *Report) error {
	rt := s.variants[0].rt
	r.Provider = &Provider{Library: rt.Version(), Name: rt.Provider(), Device: s.cfg.Device, Settings: rt.Settings()}
	return nil
}
