package onnx

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

// DeviceForms are the forms that ParseDevice reads, for the help of a flag.
const DeviceForms = "auto, cpu, cuda[:N], tensorrt[:N] or webgpu[:N]"

// ParseDevice reads a device: a provider, and for a GPU its index after a colon.
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

// gpu: the provider computes on a GPU.
func (d Device) gpu() bool {
	return d.Provider == ProviderCUDA || d.Provider == ProviderTensorRT || d.Provider == ProviderWebGPU
}

// NVIDIA tells whether the provider is in builds of ONNX Runtime for CUDA only.
func (d Device) NVIDIA() bool {
	return d.Provider == ProviderCUDA || d.Provider == ProviderTensorRT
}

// String is the form that ParseDevice reads.
func (d Device) String() string {
	if d.gpu() {
		return fmt.Sprintf("%s:%d", d.Provider, d.Index)
	}
	return d.Provider
}
