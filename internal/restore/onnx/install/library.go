package install

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// The execution providers of the builds.
const (
	// CPU is the build that runs on any machine.
	CPU = "cpu"
	// CUDA is the build that also runs on NVIDIA GPUs.
	CUDA = "cuda"
)

// minMinor is the oldest supported 1.x release. The API version that the Go binding requests is the minor version of the
// release that introduced it.
const minMinor = 29

// Sources of a Library, besides the names of flags and environment variables.
const (
	SourceCache   = "cache"
	SourceProgram = "program" // unpacked with the program
	SourceInstall = "install" // installed by this call of Install
)

// Library is an ONNX Runtime shared library on this machine.
type Library struct {
	// Path is the absolute path of the file to load.
	Path string
	// EP is [CUDA] if a CUDA provider is beside the file, else [CPU]. A CUDA build also runs on the CPU.
	EP string
	// Source is the name of the flag or variable that named the library, or a Source constant.
	Source string
	// Version is the release, such as "1.30.0", or empty if the file does not contain it.
	Version string
}

// cudaProvider returns the path of the CUDA provider that ONNX Runtime loads with the library at path.
func cudaProvider(path string) string {
	return filepath.Join(filepath.Dir(path), "libonnxruntime_providers_cuda.so")
}

// inspect describes the library at path. [ErrUnsupported]: it cannot be used on this machine, or not with the execution
// provider ep (empty: any).
func inspect(path, ep, source string) (Library, error) {
	if info, err := os.Stat(path); err != nil {
		return Library{}, err
	} else if !info.Mode().IsRegular() {
		return Library{}, fmt.Errorf("%s is not a file: %w", path, ErrUnsupported)
	}
	path, err := filepath.Abs(path) // the loader would search its own directories for a bare name
	if err != nil {
		return Library{}, err
	}
	lib := Library{Path: path, EP: CPU, Source: source}
	if runtime.GOOS == "linux" {
		version, err := elfVersion(path)
		if err != nil {
			return Library{}, err
		}
		lib.Version = version
	}
	if tooOld(lib.Version) {
		return Library{}, fmt.Errorf("%s is version %s, at least 1.%d is needed: %w", path, lib.Version, minMinor, ErrUnsupported)
	}
	if _, err := os.Stat(cudaProvider(path)); err == nil {
		lib.EP = CUDA
	}
	if ep == CUDA && lib.EP != CUDA {
		return Library{}, fmt.Errorf("%s has no %s beside it: %w", path, filepath.Base(cudaProvider(path)), ErrUnsupported)
	}
	return lib, nil
}

// elfVersion returns the release of an ONNX Runtime from the symbol version that its build defines, such as VERS_1.30.0,
// or "" for builds without one.
func elfVersion(path string) (string, error) {
	file, err := elf.Open(path)
	if err != nil {
		return "", fmt.Errorf("%s is not a shared library (%w): %w", path, err, ErrUnsupported)
	}
	defer file.Close()
	machines := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	if want, known := machines[runtime.GOARCH]; known && file.Machine != want {
		return "", fmt.Errorf("%s is built for %v, this machine is %v: %w", path, file.Machine, want, ErrUnsupported)
	}
	versions, err := file.DynamicVersions()
	if err != nil {
		return "", nil // no symbol versions
	}
	for _, version := range versions {
		if release, ok := strings.CutPrefix(version.Name, "VERS_"); ok {
			return release, nil
		}
	}
	return "", nil
}

// tooOld reports whether a release is known to be older than the Go binding needs.
func tooOld(version string) bool {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	number, err := strconv.Atoi(minor)
	if err != nil {
		return false
	}
	return major == "0" || major == "1" && number < minMinor
}
