package onnxruntime

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ddiff/internal/regular"
)

// engineCache creates the directory of TensorRT's compiled engines for a model. Its name is a digest of everything that
// an engine depends on: the model, the GPUs, the device's index and the version of ONNX Runtime.
func (r *Runtime) engineCache(model []byte) (string, error) {
	user, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the engine cache: %w", err)
	}
	dir := filepath.Join(user, "ddiff", "tensorrt", engineKey(model, nvidiaGPUs("/proc/driver/nvidia/gpus"), r.version, r.device))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("create the engine cache: %w", err)
	}
	// Engines have code. The folder of ddiff, and those below, are ours alone.
	place, err := filepath.EvalSymlinks(dir)
	for range 3 {
		if err == nil && !regular.IsPrivate(place) {
			err = fmt.Errorf("another user may change %s; remove it, or set XDG_CACHE_HOME to a folder of yours", place)
		}
		place = filepath.Dir(place)
	}
	if err != nil {
		return "", fmt.Errorf("open the engine cache: %w", err)
	}
	return dir, nil
}

func engineKey(model []byte, gpus []string, version string, d Device) string {
	h := sha256.New()
	digest := sha256.Sum256(model)
	fmt.Fprintf(h, "%x\n%s\n%s\n%s\nvisible=%s\n", digest, strings.Join(gpus, "\n"), version, d,
		os.Getenv("CUDA_VISIBLE_DEVICES"))
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// Hardware describes what the time of a model depends on: provider, library, and on NVIDIA's GPUs model and driver. Equal GPUs of a machine are one.
func (r *Runtime) Hardware() string {
	out := r.Provider() + " " + r.version
	if !r.device.NVIDIA() {
		return out
	}
	gpus := nvidiaGPUs("/proc/driver/nvidia/gpus")
	if same := slices.Compact(slices.Clone(gpus)); len(same) == 1 {
		gpus = same
	} else {
		gpus = append(gpus, r.device.String(), os.Getenv("CUDA_VISIBLE_DEVICES"))
	}
	driver, _ := os.ReadFile("/proc/driver/nvidia/version") // without it, the key has none
	return strings.Join(append(gpus, out, string(driver)), "\n")
}

// nvidiaGPUs lists the GPU models of NVIDIA's driver in the order of bus addresses; none without the driver.
func nvidiaGPUs(root string) []string {
	files, err := filepath.Glob(filepath.Join(root, "*", "information"))
	if err != nil {
		return nil
	}
	slices.Sort(files)
	var out []string
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(data)) {
			if model, ok := strings.CutPrefix(line, "Model:"); ok {
				out = append(out, strings.TrimSpace(model))
			}
		}
	}
	return out
}
