package onnxtest

import (
	"os"
	"sync"
	"testing"

	"ddiff/internal/restore/onnx/onnxruntime"
)

// softwareVulkan is the path of the description of SwiftShader, a Vulkan on the CPU, in Debian's chromium-common.
const softwareVulkan = "/usr/lib/chromium/vk_swiftshader_icd.json"

var openWebGPU = sync.OnceValues(func() (*onnxruntime.Runtime, error) {
	rt, err := open()
	if err != nil {
		return nil, err
	}
	return rt.With(onnxruntime.Config{Provider: onnxruntime.ProviderWebGPU})
})

// SoftwareVulkan makes this process and its children use the software Vulkan, unless the environment names another.
func SoftwareVulkan() error {
	const name = "VK_ICD_FILENAMES"
	_, err := os.Stat(softwareVulkan)
	if os.Getenv(name) == "" && err == nil {
		return os.Setenv(name, softwareVulkan)
	}
	return nil // another Vulkan may exist; otherwise the provider reports an error
}

// WebGPU returns the process's runtime on WebGPU. The test is skipped without WebGPU, which scripts/packages.sh installs, and in short mode.
func WebGPU(tb testing.TB) *onnxruntime.Runtime {
	tb.Helper()
	if testing.Short() {
		tb.Skip("computes on a software adapter: make test-all")
	}
	if err := SoftwareVulkan(); err != nil {
		tb.Fatal(err)
	}
	rt, err := openWebGPU()
	if err != nil {
		tb.Skipf("no WebGPU (install libvulkan1 and chromium-common for one in software): %v", err)
	}
	return rt
}
