package onnx

// The execution providers.
const (
	ProviderAuto     = "auto"     // CUDA when it loads, else CPU; never the others
	ProviderCPU      = "cpu"      //
	ProviderCUDA     = "cuda"     // NVIDIA's GPUs, cuDNN
	ProviderTensorRT = "tensorrt" // NVIDIA's GPUs, an engine compiled for model and device
	ProviderWebGPU   = "webgpu"   // any GPU with Vulkan, Metal or Direct3D 12
)

// Providers lists them.
func Providers() []string {
	return []string{ProviderAuto, ProviderCPU, ProviderCUDA, ProviderTensorRT, ProviderWebGPU}
}

// The values of Options that are words.
const (
	ArenaSameAsRequested = "same_as_requested" // the arena grows by what is asked for
	ArenaNextPowerOfTwo  = "next_power_of_two" // the arena grows in doubling blocks

	SearchHeuristic  = "heuristic"  // cuDNN's heuristics choose the convolution algorithm
	SearchExhaustive = "exhaustive" // algorithms are timed; the choice varies between runs
	SearchDefault    = "default"    // cuDNN's fallback algorithm

	LayoutNCHW = "nchw" // channels before rows
	LayoutNHWC = "nhwc" // channels last, for tensor cores

	PowerHigh = "high" // the discrete GPU of a machine that has two
	PowerLow  = "low"  // the integrated one
)

// Options are the settings of an execution provider. The zero value is right for results
// that are to be compared with those of a CPU. A setting that the provider does not have is
// refused by Validate, not passed over. The key in brackets is that of Set.
type Options struct {
	// MemoryLimit bounds the memory that the provider's arena takes on the device, in bytes;
	// 0 is no limit. For cuda, and the CUDA provider beside tensorrt. [memory_limit]
	MemoryLimit int64
	// Arena is how the arena grows, for cuda and tensorrt. Default: same_as_requested, because
	// with fixed shapes nothing grows after the first call. [arena]
	Arena string
	// ConvSearch chooses convolution algorithms, for cuda and tensorrt. Default: heuristic,
	// which chooses the same one in each run. [conv_search]
	ConvSearch string
	// TF32 lets float32 products round their factors to 10 bits on NVIDIA's GPUs. Default: off.
	// For cuda and tensorrt. [tf32]
	TF32 bool
	// Layout of images inside the provider: for cuda nchw (default) or nhwc, for webgpu nhwc
	// (default) or nchw. [layout]
	Layout string
	// FP16 lets TensorRT choose float16 for any layer, also for norms. To keep those in
	// float32, leave it off and solve with the float16 model. For tensorrt. [fp16]
	FP16 bool
	// CacheDir holds TensorRT's engines and timings, in a folder for each model, device and
	// version. Default: ddiff/tensorrt in the user's cache directory. For tensorrt. [cache_dir]
	CacheDir string
	// Power prefers one of several GPUs, for webgpu: high or low. Default: the system's choice.
	// [power]
	Power string
	// Validation checks each call of WebGPU: disabled, wgpuOnly, basic or full. Default: what
	// the library was built for (basic in a release). For webgpu. [validation]
	Validation string
	// AllowFallback names the operations (such as NonZero) that may run on the CPU although a
	// GPU was asked for. Default: none, ErrFallback names the first ones. [allow_fallback]
	AllowFallback []string
}
