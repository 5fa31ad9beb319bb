package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

const (
	// providersShared is loaded by ONNX Runtime, by its full path, before any provider.
	providersShared = "libonnxruntime_providers_shared.so"
	// cuDNN is loaded by the CUDA provider for the first convolution; it is not among its dependencies.
	cuDNN = "libcudnn.so.9"
)

// CUDALoadable checks that this machine has all dependencies of lib's CUDA provider, as far as the system's tools ldd and ldconfig tell.
// It does not check for a working GPU. Errors are [*MissingLibrariesError], and [ErrUnsupported] if lib has no CUDA provider.
func CUDALoadable(lib Library) error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("CUDA on %s: %w", runtime.GOOS, ErrUnsupported)
	}
	provider := cudaProvider(lib.Path)
	if _, err := os.Stat(provider); err != nil {
		return fmt.Errorf("%s has no CUDA provider beside it: %w", lib.Path, ErrUnsupported)
	}
	missing := missingDependencies(provider)
	if _, err := os.Stat(filepath.Join(filepath.Dir(provider), providersShared)); err != nil {
		missing = append(missing, providersShared)
	}
	if !loaderFinds(cuDNN, filepath.Dir(provider)) {
		missing = append(missing, cuDNN)
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return &MissingLibrariesError{Provider: provider, Missing: slices.Compact(missing)}
	}
	return nil
}

// missingDependencies returns the names of direct and indirect dependencies of a library that the dynamic loader does not find: lines such
// as "libcublas.so.12 => not found" of ldd. Without ldd it returns none; ONNX Runtime then reports the first.
func missingDependencies(path string) (missing []string) {
	for line := range strings.Lines(toolOutput("ldd", path)) {
		if name, place, ok := strings.Cut(strings.TrimSpace(line), " => "); ok && place == "not found" {
			missing = append(missing, name)
		}
	}
	return missing
}

// loaderFinds reports whether a library is in dir, in LD_LIBRARY_PATH or in the loader's cache.
func loaderFinds(name, dir string) bool {
	for _, dir := range append(filepath.SplitList(os.Getenv("LD_LIBRARY_PATH")), dir) {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return strings.Contains(toolOutput("ldconfig", "-p"), "\t"+name+" (")
}

// toolOutput returns the output of a tool of the system, which may be outside PATH, or "", also after ten seconds.
func toolOutput(name string, args ...string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, dir := range []string{"", "/usr/bin/", "/sbin/", "/usr/sbin/"} {
		output, err := exec.CommandContext(ctx, dir+name, args...).Output()
		if !errors.Is(err, exec.ErrNotFound) && !errors.Is(err, os.ErrNotExist) {
			return string(output)
		}
	}
	return ""
}
