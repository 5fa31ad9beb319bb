package onnxruntime

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"ddiff/internal/failure"
	"ddiff/internal/restore/onnx/modelfile"
	"ddiff/restore/onnx"
	"ddiff/restore/parameter"
)

// ErrPrecision: the precision is unknown, or the device does not compute in it.
var ErrPrecision = failure.New(failure.Runtime, "precision")

// Precision is the arithmetic of a score network.
type Precision = parameter.Precision

// The precisions.
const (
	FP32 = parameter.Float32
	BF16 = parameter.BFloat16
	FP16 = parameter.Float16
)

// ParsePrecision parses a name, such as float16. It returns ErrPrecision for other words.
func ParsePrecision(s string) (Precision, error) {
	p := Precision(s)
	if !p.Fixed() {
		return "", fmt.Errorf("%w: %q is none of float32, bfloat16, float16", ErrPrecision, s)
	}
	return p, nil
}

// Precisions returns the precisions in which the device computes a network, FP32 first, with this provider or with its
// Alternative. The first call on WebGPU compiles a small model.
func (r *Runtime) Precisions() []Precision {
	out := r.precisions()
	other := r.Alternative()
	if other == nil {
		return out
	}
	all := slices.Concat(out, other.Precisions())
	return slices.DeleteFunc(parameter.Precisions(), func(p Precision) bool { return !slices.Contains(all, p) })
}

// Alone reports whether this provider computes a network in p, without its Alternative.
func (r *Runtime) Alone(p Precision) bool { return slices.Contains(r.precisions(), p) }

// Computes reports whether the device computes a network in p.
func (r *Runtime) Computes(p Precision) bool { return r.Alone(p) || slices.Contains(r.Precisions(), p) }

// Whole reports whether the device computes a network in p in one session with the rest of a step: methods need it that
// differentiate the network, or evaluate it in a loop.
func (r *Runtime) Whole(p Precision) bool { return !r.Divides() && r.Alone(p) }

// AutoPrecision is the precision that this device suggests for campaigns with the precision auto: BF16 where OpenVINO
// computes in it, which is 1.6 to 3 times as fast as FP32 on the measured CPUs with and without AMX, else FP32.
// It regards no methods: those that need Whole cannot use every suggestion.
func (r *Runtime) AutoPrecision() Precision {
	if r.Computes(BF16) {
		return BF16
	}
	return FP32
}

// findPrecisions implements Precisions by provider.
func (r *Runtime) findPrecisions() []Precision {
	switch {
	case r.Divides():
		return thisProcessor().precisions()
	case r.Provider() == ProviderWebGPU && r.probeHalf() != nil:
		return []Precision{FP32}
	}
	return []Precision{FP32, FP16}
}

// probeHalf compiles a product in float16, which some GPUs lack.
func (r *Runtime) probeHalf() error {
	g := onnx.NewGraph(onnx.DefaultOpset)
	g.Output("y", g.MatMul(g.Input("x", onnx.Float, 1, 1), g.Const([]float32{1}, 1, 1)))
	model, err := g.Marshal("probe")
	if err != nil {
		return err
	}
	m, err := modelfile.ReadModel(model)
	if err != nil {
		return err
	}
	if model, err = proto.Marshal(m.Half().Proto()); err != nil {
		return err
	}
	s, err := r.NewSession(model, []string{"x"}, []string{"y"})
	if err != nil {
		return err
	}
	return s.Close()
}
