package picture

import (
	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/prior"
)

// OpenPrior opens a score model: an ONNX file with its card beside it or within, a folder with a latent one, or "bundled" for the one that the program has.
func OpenPrior(path string) (*prior.Prior, error) { return prior.Open(path) }

// OpenRuntime opens the installed ONNX Runtime with a device: auto, cpu, cuda:N, tensorrt:N or webgpu. Close it after its sessions. `ddiff runtime install`
// installs it, and `DDIFF_ONNXRUNTIME` names another library.
func OpenRuntime(device string) (*onnxruntime.Runtime, error) {
	d, err := onnxruntime.ParseDevice(device)
	if err != nil {
		return nil, err
	}
	lib, err := onnxruntime.Library(d.Provider, "")
	if err != nil {
		return nil, err
	}
	return onnxruntime.Open(onnxruntime.Config{Library: lib.Path, Provider: d.Provider, Device: d.Index})
}
