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
