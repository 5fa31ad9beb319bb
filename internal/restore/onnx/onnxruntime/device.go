package onnxruntime

import (
	"fmt"
	"os"
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

// DevicesForms documents the syntax of ParseDevices.
const DevicesForms = DeviceForms + "; several with commas, as cuda:0,cuda:1; cuda and tensorrt without :N: all GPUs"

// ParseDevices parses devices of one provider, separated by commas. NVIDIA's providers without an index are all GPUs that its driver lists, within
// CUDA_VISIBLE_DEVICES.
func ParseDevices(s string) ([]Device, error) {
	return parseDevices(s, func() int {
		gpus := len(nvidiaGPUs("/proc/driver/nvidia/gpus"))
		if visible, ok := os.LookupEnv("CUDA_VISIBLE_DEVICES"); ok {
			gpus = min(gpus, strings.Count(visible, ",")+1)
		}
		return gpus
	})
}

// parseDevices is ParseDevices on a machine with a number of NVIDIA's GPUs, which it asks for where the number matters.
func parseDevices(s string, gpus func() int) ([]Device, error) {
	var out []Device
	for part := range strings.SplitSeq(s, ",") {
		d, err := ParseDevice(part)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
		if d.Provider != out[0].Provider || d.Provider == ProviderAuto && len(out) > 1 {
			return nil, fmt.Errorf("%q: several devices need one provider, as in cuda:0,cuda:1", s)
		}
	}
	if d := out[0]; len(out) == 1 && d.NVIDIA() && !strings.Contains(s, ":") {
		for i := range gpus() - 1 {
			out = append(out, Device{d.Provider, i + 1})
		}
	}
	return out, nil
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
