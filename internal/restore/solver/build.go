package solver

import (
	"fmt"
	"math"

	"ddiff/internal/failure"
	"ddiff/internal/restore/onnx/infer"
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/prior"
	"ddiff/restore/method"
	"ddiff/restore/parameter"
)

// ErrConfig reports a build setting that is unknown or out of range. The message names the setting.
var ErrConfig = failure.New(failure.Input, "solver setting")

// Build holds the compilation settings of a solver. They change results by rounding only, and are not part of an item's
// identity.
type Build struct {
	// Precision of the score network. Default: onnxruntime.FP32.
	Precision onnxruntime.Precision
	// Tiles is the largest number of tiles per call of the network, for images that are divided. Default: 0, by provider.
	Tiles int `json:",omitempty"`
	// Streams is the largest number of parts of a batch that are computed beside each other, with a share of the threads each,
	// see [prior.Prior.Streams]. Default: the number of threads on the CPU provider and OpenVINO, 1 elsewhere. Images in tiles have one.
	Streams int
	// Form of the score network of a step that can be divided, see Divisible; others have it as exported. Default: as exported.
	Form prior.Form `json:",omitempty"`
}

// Validate returns ErrConfig for the first invalid field.
func (b Build) Validate() error {
	switch {
	case b.Streams < 0:
		return fmt.Errorf("%w streams: %d is negative", ErrConfig, b.Streams)
	case b.Tiles < 0:
		return fmt.Errorf("%w tiles: %d is negative", ErrConfig, b.Tiles)
	case b.Precision != "" && !b.Precision.Fixed():
		return fmt.Errorf("%w precision: %q is none of %v", ErrConfig, b.Precision, parameter.Precisions())
	}
	if b.Form != "" {
		if _, err := prior.ParseForm(string(b.Form)); err != nil {
			return fmt.Errorf("%w form: %w", ErrConfig, err)
		}
	}
	return nil
}

// tilesOnGPU is the number of tiles per call of the network on a GPU. A processor takes as long for four tiles as for four calls, and a tile
// takes memory.
const tilesOnGPU = 8

// Complete validates the build and fills in the defaults.
func (b Build) Complete(rt *onnxruntime.Runtime) (Build, error) {
	if err := b.Validate(); err != nil {
		return b, err
	}
	switch {
	case rt.Provider() != onnxruntime.ProviderCPU && !rt.Divides():
		b.Streams = 1
	case b.Streams == 0:
		b.Streams = rt.Threads()
	}
	if b.Form == prior.Exported {
		b.Form = ""
	}
	if b.Form != "" && rt.Divides() {
		return b, fmt.Errorf("%w form: %s has a form of its own; leave out %s", ErrConfig, rt.Provider(), b.Form)
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

// ForTiles returns the build of a run whose images are divided into tiles: each evaluation of the network is several calls.
func (b Build) ForTiles() Build {
	b.Streams = 1
	return b
}

// shortRepeat is the number of inner iterations that CUDA has one after the other: a loop costs it a synchronisation per iteration.
// More take long to compile.
const shortRepeat = 8

// unrolled returns the largest number of inner iterations that a model has one after the other; more are a loop.
func unrolled(provider string) int {
	switch provider {
	case onnxruntime.ProviderWebGPU: // has no loop
		return math.MaxInt
	case onnxruntime.ProviderCUDA:
		return shortRepeat
	}
	return 0
}

// NoiseBytes estimates the host's memory for the noise of inner iterations while a batch of n images is solved: two steps in
// flight, and the parts that a step reads. dims is the shape of one image in the prior's space. It is
// 0 for a method without inner iterations, and for settings with an invalid number of them.
func NoiseBytes(m method.Info, s method.Settings, dims []int, n int) int64 {
	const copies = 3
	return 4 * copies * int64(m.InnerDraws(s)) * int64(n) * int64(infer.Size(dims))
}
