package onnxtest

import (
	"os"
	"sync"
	"testing"

	"ddiff/restore/onnx"
)

// softwareVulkan is where Debian's chromium-common describes SwiftShader, a Vulkan that
// computes on the CPU.
const softwareVulkan = "/usr/lib/chromium/vk_swiftshader_icd.json"

var openWebGPU = sync.OnceValues(func() (*onnx.Runtime, error) {
	rt, err := open()
	if err != nil {
		return nil, err
	}
	return rt.With(onnx.Config{Provider: onnx.ProviderWebGPU})
})

// SoftwareVulkan lets this process and those that it starts find the software Vulkan,
// unless the environment names another.
func SoftwareVulkan() error {
	const name = "VK_ICD_FILENAMES"
	_, err := os.Stat(softwareVulkan)
	if os.Getenv(name) == "" && err == nil {
		return os.Setenv(name, softwareVulkan)
	}
	return nil // there may be another; the provider says so if there is none
}

// WebGPU is the process's runtime on WebGPU, opened once beside that on the CPU. A test that
// cannot have it is skipped; scripts/packages.sh installs what it needs.
func WebGPU(tb testing.TB) *onnx.Runtime {
	tb.Helper()
	if err := SoftwareVulkan(); err != nil {
		tb.Fatal(err)
	}
	rt, err := openWebGPU()
	if err != nil {
		tb.Skipf("no WebGPU (install libvulkan1 and chromium-common for one in software): %v", err)
	}
	return rt
}
