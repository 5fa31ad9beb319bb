package onnxruntime

// The execution providers.
const (
	ProviderAuto     = "auto"     // CUDA if available, else CPU, beside OpenVINO if Config names it
	ProviderCPU      = "cpu"      //
	ProviderCUDA     = "cuda"     // NVIDIA's GPUs, cuDNN
	ProviderTensorRT = "tensorrt" // NVIDIA's GPUs, an engine compiled for model and device
	ProviderWebGPU   = "webgpu"   // any GPU with Vulkan, Metal or Direct3D 12
	ProviderOpenVINO = "openvino" // the CPU; OpenVINO computes the score network, ONNX Runtime the rest
)

// Providers lists the execution providers.
func Providers() []string {
	return []string{ProviderAuto, ProviderCPU, ProviderCUDA, ProviderTensorRT, ProviderWebGPU, ProviderOpenVINO}
}

// The values of Options that are words.
const (
	ArenaSameAsRequested = "same_as_requested" // the arena grows by the requested size
	ArenaNextPowerOfTwo  = "next_power_of_two" // the arena grows in doubling blocks

	SearchHeuristic  = "heuristic"  // cuDNN's heuristics choose the convolution algorithm
	SearchExhaustive = "exhaustive" // cuDNN times the algorithms; the choice varies between runs
	SearchDefault    = "default"    // cuDNN's fallback algorithm

	LayoutNCHW  = "nchw"  // channels before rows
	LayoutNHWC  = "nhwc"  // channels last, for tensor cores
	LayoutNCHWc = "nchwc" // blocks of channels last, for vector units, see Graph.Block

	PowerHigh = "high" // the discrete GPU of a machine with two
	PowerLow  = "low"  // the integrated GPU
)

// Options are the settings of an execution provider. The zero value suits results that are compared with those of a
// CPU. Validate refuses an option that the provider does not have. Brackets enclose the keys of Set.
type Options struct {
	// MemoryLimit bounds the provider's arena on the device, in bytes. Default: 0, no limit. For cuda, and the CUDA
	// provider beside tensorrt. [memory_limit]
	MemoryLimit int64
	// Arena controls the growth of the arena, for cuda and tensorrt. Default: same_as_requested, because with fixed
	// shapes nothing grows after the first call. [arena]
	Arena string
	// ConvSearch selects the choice of convolution algorithms, for cuda and tensorrt. Default: heuristic, which makes
	// the same choice in every run. [conv_search]
	ConvSearch string
	// TF32 rounds the factors of float32 products to 10 bits on NVIDIA's GPUs. Default: off. For cuda and tensorrt. [tf32]
	TF32 bool
	// Layout of images inside the provider: for cuda nchw (default) or nhwc, for webgpu nhwc (default) or nchw, for cpu nchwc
	// (default, where the library has it, and for networks in float32 without gradient) or nchw, with which the library chooses. [layout]
	Layout string
	// FP16 allows TensorRT float16 in any layer, norms included. The float16 model instead keeps norms in float32.
	// Default: off. For tensorrt. [fp16]
	FP16 bool
	// CacheDir holds TensorRT's engines and timings, in a folder for each model, device and version. Default:
	// ddiff/tensorrt in the user's cache directory. For tensorrt. [cache_dir]
	CacheDir string
	// Power prefers one of several GPUs, for webgpu: high or low. Default: the system's choice. [power]
	Power string
	// Validation checks each call of WebGPU: disabled, wgpuOnly, basic or full. Default: the choice of the library's
	// build (basic in a release). For webgpu. [validation]
	Validation string
	// AllowFallback names operations (such as NonZero) that may run on the CPU instead of the GPU. Default: none.
	// [allow_fallback]
	AllowFallback []string
}
