package onnxruntime

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Device is a provider and one of its devices.
type Device struct {
	Provider string
	Index    int
}

// DeviceForms documents the syntax of ParseDevice for the help of a flag.
const DeviceForms = "auto, cpu, cuda[:N], tensorrt[:N], webgpu[:N] or openvino"

// ParseDevice parses a provider and, for a GPU, its index after a colon.
func ParseDevice(s string) (Device, error) {
	provider, index, given := strings.Cut(s, ":")
	d := Device{Provider: provider}
	known := slices.Contains(Providers(), provider)
	if given {
		n, err := strconv.Atoi(index)
		known = known && err == nil && n >= 0 && d.gpu()
		d.Index = n
	}
	if !known {
		return Device{}, fmt.Errorf("%q is none of %s", s, DeviceForms)
	}
	return d, nil
}

// gpu reports whether the provider computes on a GPU. Nodes that would run on the CPU provider instead are refused.
func (d Device) gpu() bool {
	return d.Provider == ProviderCUDA || d.Provider == ProviderTensorRT || d.Provider == ProviderWebGPU
}

// NVIDIA reports whether only builds of ONNX Runtime for CUDA contain the provider.
func (d Device) NVIDIA() bool {
	return d.Provider == ProviderCUDA || d.Provider == ProviderTensorRT
}

// String returns the syntax of ParseDevice.
func (d Device) String() string {
	if d.gpu() {
		return fmt.Sprintf("%s:%d", d.Provider, d.Index)
	}
	return d.Provider
}
