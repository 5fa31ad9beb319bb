package solver

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"ddiff/restore/method"
	"ddiff/restore/onnx/infer"
	"ddiff/restore/onnx/onnxruntime"
	"ddiff/restore/parameter"
)

// ErrConfig reports a build setting that is unknown or out of range. The message names the setting.
var ErrConfig = errors.New("solver setting")

// Form is the layout of a call's steps in the model.
type Form string

// The forms. Their results differ by rounding only; defaultForm chooses one.
const (
	// FormLoop: one step, repeated by the runtime. The model is small, and makes any number of steps up to the chunk.
	FormLoop Form = "loop"
	// FormUnrolled: the steps one after the other, with the weights stored once. It needs no control flow, which WebGPU
	// lacks and which costs CUDA a synchronisation per step.
	FormUnrolled Form = "unrolled"
	// FormSingle: one step. The state crosses to the host after each step.
	FormSingle Form = "single"
)

// Forms lists the forms.
func Forms() []Form { return []Form{FormLoop, FormUnrolled, FormSingle} }

// Build holds the compilation settings of a solver. They change results by rounding only, and are not part of an item's
// identity.
type Build struct {
	// Form of the model. Default: by provider.
	Form Form
	// Chunk is the largest number K of steps per call. Default: by provider. With FormSingle it is 1. A call makes fewer
	// steps if they have inner iterations with noise, whose memory would grow.
	Chunk int
	// Precision of the score network. Default: onnxruntime.FP32.
	Precision onnxruntime.Precision
	// Tiles is the largest number of tiles per call of the network, for images that are divided. Default: 0, by provider.
	Tiles int `json:",omitempty"`
	// Streams is the largest number of parts of a batch that are computed beside each other, with a share of the threads each,
	// see [prior.Prior.Streams]. Default: the number of threads on the CPU provider and OpenVINO, 1 elsewhere. Images in tiles have one.
	Streams int
}

// Validate returns ErrConfig for the first invalid field.
func (b Build) Validate() error {
	switch {
	case b.Form != "" && !slices.Contains(Forms(), b.Form):
		return fmt.Errorf("%w form: %q is none of %v", ErrConfig, b.Form, Forms())
	case b.Chunk < 0:
		return fmt.Errorf("%w chunk: %d is negative", ErrConfig, b.Chunk)
	case b.Form == FormSingle && b.Chunk > 1:
		return fmt.Errorf("%w chunk: %d steps per call, but the form single makes one", ErrConfig, b.Chunk)
	case b.Streams < 0:
		return fmt.Errorf("%w streams: %d is negative", ErrConfig, b.Streams)
	case b.Tiles < 0:
		return fmt.Errorf("%w tiles: %d is negative", ErrConfig, b.Tiles)
	case b.Precision != "" && !b.Precision.Fixed():
		return fmt.Errorf("%w precision: %q is none of %v", ErrConfig, b.Precision, parameter.Precisions())
	}
	return nil
}

// The numbers of steps per call of the runtime, by default.
const (
	DefaultChunk    = 10 // FormLoop: the model is the same for any number
	DefaultUnrolled = 4  // FormUnrolled: the model grows with it, and the time to compile
)

// tilesOnGPU is the number of tiles per call of the network on a GPU. A processor takes as long for four tiles as for four calls, and a tile
// takes memory.
const tilesOnGPU = 8

// Complete validates the build and fills in the defaults.
func (b Build) Complete(rt *onnxruntime.Runtime) (Build, error) {
	if err := b.Validate(); err != nil {
		return b, err
	}
	if b.Form == "" {
		b.Form = defaultForm(rt.Provider())
	}
	if rt.Divides() && b.Form != FormSingle {
		return b, fmt.Errorf("%w form: %s on %s, which makes single steps", ErrConfig, b.Form, rt.Provider())
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
	switch {
	case rt.Provider() != onnxruntime.ProviderCPU && !rt.Divides():
		b.Streams = 1
	case b.Streams == 0:
		b.Streams = rt.Threads()
	}
	if b.Precision == "" {
		b.Precision = onnxruntime.FP32
	}
	if !rt.Alone(b.Precision) {
		return b, fmt.Errorf("%w: %s cannot compute the network in %s", onnxruntime.ErrPrecision, rt.Provider(), b.Precision)
	}
	return b, nil
}

// of returns the complete build of a run.
func (b Build) of(rt *onnxruntime.Runtime, run *method.Run) (Build, error) {
	if run.Grid() != nil {
		b = b.ForTiles()
	}
	return b.Complete(rt)
}

// tiles returns the largest number of tiles per call of the network.
func (b Build) tiles(rt *onnxruntime.Runtime) int {
	switch {
	case b.Tiles > 0:
		return b.Tiles
	case rt.GPU():
		return tilesOnGPU
	}
	return 1
}

// ForTiles returns the build of a run whose images are divided into tiles: single steps, because each evaluation of the network is several
// calls.
func (b Build) ForTiles() Build {
	b.Form, b.Chunk, b.Streams = FormSingle, 1, 1
	return b
}

// defaultForm returns the form for a provider. On the CPU the forms take the same time per step (BenchmarkForms, the bundled
// prior at 128×128 on two cores: loop 129, ten or four steps unrolled 122 and 119, single 121 ms, on a busy machine), but the
// loop compiles in 0.3 s and ten unrolled steps in 2.3 s. WebGPU has no Loop. CUDA and TensorRT were not measured.
func defaultForm(provider string) Form {
	switch provider {
	case onnxruntime.ProviderCPU:
		return FormLoop
	case onnxruntime.ProviderTensorRT, onnxruntime.ProviderOpenVINO:
		// TensorRT compiles for minutes per step in the model. With OpenVINO each evaluation is a call.
		return FormSingle
	}
	return FormUnrolled
}

// innerDraws bounds the noise tensors of the inner iterations in a call: their memory grows with the steps of a call, and
// such steps are long.
const innerDraws = 32

// steps returns the number of steps of a call for settings of a method: Chunk, or fewer if the steps have inner iterations
// with noise.
func (b Build) steps(m method.Info, s method.Settings) int {
	inner, err := m.InnerDraws(s)
	if err != nil || inner == 0 {
		return b.Chunk
	}
	return max(1, min(b.Chunk, innerDraws/inner))
}

// shortRepeat is the number of inner iterations that FormUnrolled unrolls. More take long to compile.
const shortRepeat = 8

// unrolled returns the largest number of inner iterations that a model has one after the other; more are a loop.
func unrolled(provider string, form Form) int {
	switch {
	case provider == onnxruntime.ProviderWebGPU: // has no loop
		return math.MaxInt
	case form == FormUnrolled:
		return shortRepeat
	}
	return 0
}

// NoiseBytes estimates the host's memory for the noise of inner iterations while a batch of n images is solved: two chunks in
// flight, the input of the model, and the parts that a step reads. dims is the shape of one image in the prior's space. It is
// 0 for a method without inner iterations.
func (b Build) NoiseBytes(m method.Info, s method.Settings, dims []int, n int) (int64, error) {
	inner, err := m.InnerDraws(s)
	steps := b.steps(m, s)
	return 4 * int64(3*steps+1) * int64(inner) * int64(n) * int64(infer.Size(dims)), err
}
