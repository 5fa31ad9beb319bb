package gpucheck

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ddiff/restore/onnx"
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

// RunSection runs a section that computes, in this process, and puts what it finds into r.
func RunSection(ctx context.Context, name string, cfg Config, r *Report) error {
	run, ok := map[string]func(context.Context, *bench, *Report) error{
		"provider": openProvider,
		"network":  compareNetworks,
		"tasks":    compareTasks,
		"speed":    measureSpeed,
		"torch":    timeTorch,
	}[name]
	if !ok {
		return fmt.Errorf("%w: there is no section %q that computes", ErrConfig, name)
	}
	b, err := newBench(cfg)
	if err != nil {
		return err
	}
	return errors.Join(run(ctx, b, r), b.close())
}

// bench is the open runtime, with the CPU as the reference and the device beside it.
type bench struct {
	cfg      Config
	cpu      *onnx.Runtime
	variants []variant
}

// variant is the device with one precision.
type variant struct {
	name  string
	rt    *onnx.Runtime
	build solver.Build
}

func newBench(cfg Config) (b *bench, err error) {
	b = &bench{cfg: cfg}
	if b.cpu, err = onnx.Open(onnx.Config{Library: cfg.Library, Provider: onnx.ProviderCPU, Threads: cfg.Threads}); err != nil {
		return nil, err
	}
	d := cfg.device()
	open := func(o onnx.Options) (*onnx.Runtime, error) {
		return b.cpu.With(onnx.Config{Provider: d.Provider, Device: d.Index, Threads: cfg.Threads, Options: o})
	}
	plain, err := open(onnx.Options{})
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	b.variants = []variant{{fp32, plain, solver.Build{Precision: solver.FP32}}}
	// TensorRT's TF32 is switched for the whole process, so there it is left off.
	if d.Provider == onnx.ProviderCUDA {
		rounded, err := open(onnx.Options{TF32: true})
		if err != nil {
			return nil, errors.Join(err, b.close())
		}
		b.variants = append(b.variants, variant{tf32, rounded, solver.Build{Precision: solver.FP32}})
	}
	b.variants = append(b.variants, variant{fp16, plain, solver.Build{Precision: solver.FP16}})
	return b, nil
}

func (b *bench) close() error {
	closed := map[*onnx.Runtime]bool{}
	var err error
	for _, v := range b.variants {
		if !closed[v.rt] {
			closed[v.rt] = true
			err = errors.Join(err, v.rt.Close())
		}
	}
	return errors.Join(err, b.cpu.Close())
}

// network opens a network by its name, and gives the side of its images.
func (b *bench) network(name string) (*prior.Prior, int, error) {
	if name == bundledNetwork {
		p, err := prior.Open(prior.Bundled)
		return p, b.cfg.Size, err
	}
	n, err := randomnet.New(b.cfg.Random)
	if err != nil {
		return nil, 0, err
	}
	data, err := n.ONNX()
	if err != nil {
		return nil, 0, err
	}
	p, err := prior.Load(randomNetwork, data)
	return p, b.cfg.Random.Size, err
}

// lack tells whether an error says that the device has no float16, and notes it. TF32 is never
// refused: where there is none, products are computed in float32.
func (r *Report) lack(v variant, err error) bool {
	if err == nil || v.name != fp16 || !strings.Contains(err.Error(), "requires f16 but the device does not support it") {
		return false
	}
	r.Lacks = map[string]string{fp16: "the device has no float16"}
	return true
}

// openProvider records what was opened.
func openProvider(_ context.Context, b *bench, r *Report) error {
	rt := b.variants[0].rt
	r.Provider = &Provider{Library: rt.Version(), Name: rt.Provider(), Device: b.cfg.Device, Settings: rt.Settings()}
	return nil
}
