package onnxruntime

import "ddiff/internal/restore/onnx/install"

// Library locates the library of ONNX Runtime for a provider. path is that of the user, or empty.
func Library(provider, path string) (install.Library, error) {
	options := install.LocateOptions{Path: path}
	switch d := (Device{Provider: provider}); {
	case d.NVIDIA():
		options.EP = install.CUDA
	case provider == ProviderWebGPU, provider == ProviderOpenVINO:
		options.EP = install.CPU // only the CPU build contains WebGPU, and is new enough for OpenVINO
	}
	return install.Locate(options)
}
