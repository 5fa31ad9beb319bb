package solver

import (
	"errors"
	"fmt"
	"slices"

	"ddiff/restore/onnx"
)

// ErrConfig reports a build setting that is unknown or out of range. The message names the setting.
var ErrConfig = errors.New("solver setting")

// Form is how the steps of a call lie in the model.
type Form string

// The forms. They compute the same; see defaultForm for which is used where.
const (
	// FormLoop: one step, repeated by the runtime. The model is small, and the last call of a
	// run makes fewer steps with the same model.
	FormLoop Form = "loop"
	// FormUnrolled: the steps one after the other, with the weights stored once. It needs no
	// control flow, which WebGPU lacks and which costs CUDA a synchronisation per step.
	FormUnrolled Form = "unrolled"
	// FormSingle: one step; the state crosses to the host after each.
	FormSingle Form = "single"
)

// Forms lists them.
func Forms() []Form { return []Form{FormLoop, FormUnrolled, FormSingle} }

// Precision is the arithmetic of the score network. The solver's own is float32 always.
type Precision string

// The precisions.
const (
	FP32 Precision = "fp32"
	// FP16: convolutions, products and what lies between them in float16; normalisations,
	// softmax and attention's products in float32.
	FP16 Precision = "fp16"
)

// Precisions lists them.
func Precisions() []Precision { return []Precision{FP32, FP16} }

// Build says how a solver is compiled. It changes answers by rounding only, and is no part
// of an item's identity.
type Build struct {
	// Form of the model. Default: by provider.
	Form Form
	// Chunk is the number K of steps per call. Default: by provider. With FormSingle it is 1.
	Chunk int
	// Precision of the score network. Default: FP32.
	Precision Precision
}

// Validate names the first field that is wrong, with ErrConfig.
func (b Build) Validate() error {
	switch {
	case b.Form != "" && !slices.Contains(Forms(), b.Form):
		return fmt.Errorf("%w form: %q is none of %v", ErrConfig, b.Form, Forms())
	case b.Chunk < 0:
		return fmt.Errorf("%w chunk: %d is negative", ErrConfig, b.Chunk)
	case b.Form == FormSingle && b.Chunk > 1:
		return fmt.Errorf("%w chunk: %d steps per call, but the form single makes one", ErrConfig, b.Chunk)
	case b.Precision != "" && !slices.Contains(Precisions(), b.Precision):
		return fmt.Errorf("%w precision: %q is none of %v", ErrConfig, b.Precision, Precisions())
	}
	return nil
}

// The numbers of steps per call of the runtime, by default.
const (
	DefaultChunk    = 10 // FormLoop: the model is the same for any number
	DefaultUnrolled = 4  // FormUnrolled: the model grows with it, and the time to compile
)

// Complete checks the build and fills in what is left out.
func (b Build) Complete(rt *onnx.Runtime) (Build, error) {
	if err := b.Validate(); err != nil {
		return b, err
	}
	if b.Form == "" {
		b.Form = defaultForm(rt.Provider())
	}
	switch {
	case b.Form == FormSingle:
		b.Chunk = 1
	case b.Chunk > 0:
	case b.Form == FormUnrolled:
		b.Chunk = DefaultUnrolled
	default:
		b.Chunk = DefaultChunk
	}
	if b.Precision == "" {
		b.Precision = FP32
	}
	return b, nil
}

// defaultForm is the form for a provider. In the time of a step the forms do not differ on
// the CPU (BenchmarkForms, the bundled prior at 128×128 on two cores: loop 129, ten or four
// steps unrolled 122 and 119, single 121 ms, on a machine with other work); but the loop
// compiles in 0.3 s, ten steps unrolled in 2.3 s. WebGPU has no Loop. CUDA and TensorRT were
// not measured.
func defaultForm(provider string) Form {
	switch provider {
	case onnx.ProviderCPU:
		return FormLoop
	case onnx.ProviderTensorRT:
		// It compiles for minutes, and as many times longer as there are steps in the model.
		return FormSingle
	}
	return FormUnrolled
}
