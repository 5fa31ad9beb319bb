package install

import (
	"bytes"
	"context"
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
	// cuDNN is loaded by the CUDA provider for the first convolution; it is not among the ELF dependencies.
	cuDNN = "libcudnn.so.9"
)

// loaderTimeout limits the time of a program of the dynamic loader.
const loaderTimeout = 10 * time.Second

// CUDALoadable checks that this machine has all dependencies of lib's CUDA provider. The dynamic loader lists them and runs
// none of their code, so it does not check for a working GPU. Errors are [*MissingLibrariesError], and [ErrUnsupported] if lib
// has no CUDA provider.
func CUDALoadable(lib Library) error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("CUDA on %s: %w", runtime.GOOS, ErrUnsupported)
	}
	provider := cudaProvider(lib.Path)
	if _, err := os.Stat(provider); err != nil {
		return fmt.Errorf("%s has no CUDA provider beside it: %w", lib.Path, ErrUnsupported)
	}
	missing, err := missingDependencies(provider)
	if err != nil {
		return err
	}
	dir := filepath.Dir(provider)
	if _, err := os.Stat(filepath.Join(dir, providersShared)); err != nil {
		missing = append(missing, providersShared)
	}
	if !findable(cuDNN, dir) {
		missing = append(missing, cuDNN)
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return &MissingLibrariesError{Provider: provider, Missing: missing}
	}
	return nil
}

// missingDependencies returns the names of missing direct and indirect dependencies of the library at path.
func missingDependencies(path string) ([]string, error) {
	output, err := loaderProgram("ldd", path)
	if err != nil {
		return nil, fmt.Errorf("list the dependencies of %s: %w", path, err)
	}
	var missing []string
	for line := range strings.Lines(string(output)) {
		if name, ok := strings.CutSuffix(strings.TrimSpace(line), " => not found"); ok && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	}
	return missing, nil
}

// findable reports whether the dynamic loader finds a library that one in dir loads by its name.
func findable(name, dir string) bool {
	dirs := append(filepath.SplitList(os.Getenv("LD_LIBRARY_PATH")), dir, "/lib64", "/usr/lib64", "/lib", "/usr/lib")
	if slices.ContainsFunc(dirs, func(dir string) bool { _, err := os.Stat(filepath.Join(dir, name)); return err == nil }) {
		return true
	}
	cached := []byte("\t" + name + " (")
	return slices.ContainsFunc([]string{"ldconfig", "/sbin/ldconfig", "/usr/sbin/ldconfig"}, func(program string) bool {
		output, err := loaderProgram(program, "-p")
		return err == nil && bytes.Contains(output, cached)
	})
}

// loaderProgram returns the output of a program of the dynamic loader, in English.
func loaderProgram(program, argument string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), loaderTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, argument)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	return cmd.Output()
}
