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

// The execution providers for which there are builds.
const (
	// CPU is the build that runs on any machine.
	CPU = "cpu"
	// CUDA is the build that also runs on NVIDIA GPUs.
	CUDA = "cuda"
)

// minMinor is the oldest 1.x release whose C API is new enough: the API version that the Go
// binding asks for equals the minor version of the release that introduced it.
const minMinor = 29

// Where a Library was found, beside the name of the flag or environment variable that gave it.
const (
	SourceCache   = "cache"
	SourceSystem  = "system"
	SourceInstall = "install" // just installed by Install
)

// Library is an ONNX Runtime shared library on this machine.
type Library struct {
	// Path is the file to load, absolute.
	Path string
	// EP is [CUDA] when a CUDA provider lies beside the file, else [CPU]. A CUDA build serves the
	// CPU too.
	EP string
	// Source is where it was found: the name of the flag or variable that gave it,
	// [SourceCache], [SourceSystem] or [SourceInstall].
	Source string
	// Version is the release, such as "1.30.0"; empty when the file does not tell.
	Version string
}

// libraryNames are the file names under which a directory may hold ONNX Runtime, as patterns in
// order of preference.
func libraryNames(goos string) []string {
	if goos == "darwin" {
		return []string{"libonnxruntime.dylib", "libonnxruntime.1.dylib", "libonnxruntime.1.*.dylib"}
	}
	return []string{"libonnxruntime.so", "libonnxruntime.so.1", "libonnxruntime.so.1.*"}
}

// cudaProvider is the path of the CUDA provider that ONNX Runtime loads with the library at path.
func cudaProvider(path string) string {
	return filepath.Join(filepath.Dir(path), "libonnxruntime_providers_cuda.so")
}

// inspect describes the library at path. The error wraps [ErrUnsupported] when it cannot be used
// on this machine, or not with the execution provider ep (empty: any).
func inspect(path, ep, source string) (Library, error) {
	path, err := filepath.Abs(path) // a bare name would be looked up in the loader's own places
	if err != nil {
		return Library{}, err
	}
	lib := Library{Path: path, EP: CPU, Source: source}
	if info, err := os.Stat(path); err != nil {
		return Library{}, err
	} else if !info.Mode().IsRegular() {
		return Library{}, fmt.Errorf("%s is not a file: %w", path, ErrUnsupported)
	}
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

// elfVersion reads the release of an ONNX Runtime from the symbol version that its build defines,
// such as VERS_1.30.0. It is empty in a build that defines none.
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
		return "", nil // no symbol versions at all
	}
	for _, version := range versions {
		if release, ok := strings.CutPrefix(version.Name, "VERS_"); ok {
			return release, nil
		}
	}
	return "", nil
}

// tooOld reports whether a release is older than the Go binding needs; an unknown one is not.
func tooOld(version string) bool {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	number, err := strconv.Atoi(minor)
	if err != nil {
		return false
	}
	return major == "0" || major == "1" && number < minMinor
}
