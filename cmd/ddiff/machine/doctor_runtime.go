package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"ddiff/internal/restore/onnx/install"
	"ddiff/internal/restore/onnx/onnxruntime"
)

// runtimeFindings locates ONNX Runtime and opens each supported provider in a process of its own. It returns an error
// if the CPU provider cannot be used.
func runtimeFindings(ctx context.Context, path string) ([]finding, error) {
	lib, err := install.Locate(install.LocateOptions{Path: path})
	if err != nil {
		return []finding{missing("ONNX Runtime", firstLine(err), "run: ddiff runtime install")}, err
	}
	out := []finding{found("ONNX Runtime", "%s, build for %s, %s (%s)", lib.Version, lib.EP, lib.Path, lib.Source)}
	openVINO, noOpenVINO := install.LocateOpenVINO("")
	open := func(name, device, remedy string) error {
		version, err := probe(ctx, device, lib.Path, openVINO.Path)
		if err != nil {
			out = append(out, missing(name, "cannot be opened: "+lastPart(err), remedy))
			return err
		}
		out = append(out, found(name, "opened with ONNX Runtime %s", version))
		return nil
	}
	failure := open("provider cpu", onnxruntime.ProviderCPU, "name another library with --onnxruntime, or run: ddiff runtime install")
	if failure != nil {
		failure = fmt.Errorf("%w: %w", onnxruntime.ErrRuntime, failure)
	}
	if noOpenVINO != nil {
		reason, _, _ := strings.Cut(firstLine(noOpenVINO), "; run: ")
		out = append(out, missing("provider openvino", reason, "optional, on x86-64 Linux: run: ddiff runtime install --ep openvino"))
	} else {
		_ = open("provider openvino", onnxruntime.ProviderOpenVINO, "use --device cpu") // optional
	}
	if reason, remedy := cudaMissing(lib); reason != "" {
		out = append(out, missing("provider cuda", reason, remedy))
	} else {
		_ = open("provider cuda", onnxruntime.ProviderCUDA, "name another library with --onnxruntime") // optional
	}
	_ = open("provider webgpu", onnxruntime.ProviderWebGPU, "optional, in the CPU build alone: install libvulkan1 and the GPU's Vulkan driver "+
		"(without a GPU: install chromium-common and set VK_ICD_FILENAMES to its vk_swiftshader_icd.json)")
	return out, failure
}

// nvidiaDriver reports whether the kernel has NVIDIA's driver, on Linux or in WSL.
func nvidiaDriver() bool {
	for _, device := range []string{"/dev/nvidiactl", "/dev/dxg"} {
		if _, err := os.Stat(device); err == nil {
			return true
		}
	}
	return false
}

// cudaMissing returns the first missing prerequisite of CUDA and its remedy, or "".
func cudaMissing(lib install.Library) (reason, remedy string) {
	if runtime.GOOS != "linux" {
		return "CUDA builds are for Linux", "use the CPU"
	}
	if !nvidiaDriver() {
		return "no NVIDIA driver (neither /dev/nvidiactl nor /dev/dxg)",
			"run this where there is an NVIDIA GPU with driver 525 or newer; a container needs access to the GPU (--gpus all)"
	}
	if lib.EP != install.CUDA {
		return "the library is not a CUDA build", "run: ddiff runtime install --ep cuda"
	}
	if err := install.CUDALoadable(lib); err != nil {
		reason = firstLine(err)
		if absent, ok := errors.AsType[*install.MissingLibrariesError](err); ok {
			reason = "missing " + strings.Join(absent.Missing, ", ")
		}
		return reason, "install CUDA of this number and cuDNN 9, or add their directories to LD_LIBRARY_PATH"
	}
	return "", ""
}

// lastPart returns the end of an error message: ONNX Runtime puts the cause after file names.
func lastPart(err error) string {
	const limit = 120
	text := firstLine(err)
	if len(text) <= limit {
		return text
	}
	text = text[len(text)-limit:]
	if _, rest, ok := strings.Cut(text, " "); ok {
		text = rest
	}
	return "... " + text
}

// firstLine returns the first line of an error message.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
