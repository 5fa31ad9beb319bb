package install

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// Names that exist on no machine, so that only a test's files are found.
const (
	blas   = "libddiff_test_blas.so.12"
	blasLt = "libddiff_test_blaslt.so.12"
)

// cudaBuild creates a CUDA build in ort whose provider needs blas, which needs blasLt; deps contains them and cuDNN.
func cudaBuild(t *testing.T, ort, deps string, flags ...string) Library {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("CUDA builds are for Linux")
	}
	compile(t, filepath.Join(deps, blasLt), "")
	compile(t, filepath.Join(deps, blas), "", append(flags, filepath.Join(deps, blasLt))...)
	compile(t, filepath.Join(deps, cuDNN), "")
	compile(t, filepath.Join(ort, "libonnxruntime_providers_cuda.so"), "", append(flags, filepath.Join(deps, blas))...)
	compile(t, filepath.Join(ort, providersShared), "")
	compile(t, filepath.Join(ort, "libonnxruntime.so"), "1.30.0")
	return Library{Path: filepath.Join(ort, "libonnxruntime.so"), EP: CUDA}
}

func TestMissingDependencies(t *testing.T) {
	t.Parallel()
	const runpath = "-Wl,-rpath,$ORIGIN/../deps"
	tests := map[string]struct {
		flags   []string
		removed string
		want    []string
	}{
		"nowhere":                      {want: []string{blas}},
		"run path":                     {flags: []string{runpath}},
		"indirect missing on run path": {flags: []string{runpath}, removed: blasLt, want: []string{blasLt}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := filepath.Join(t.TempDir(), "x")
			deps := filepath.Join(root, "deps")
			lib := cudaBuild(t, filepath.Join(root, "ort"), deps, test.flags...)
			if test.removed != "" {
				must(t, os.Remove(filepath.Join(deps, test.removed)))
			}
			if missing := missingDependencies(cudaProvider(lib.Path)); !slices.Equal(missing, test.want) {
				t.Errorf("missing %q; want %q", missing, test.want)
			}
		})
	}
}

func TestCUDALoadable(t *testing.T) {
	ort, deps := t.TempDir(), t.TempDir()
	lib := cudaBuild(t, ort, deps)
	t.Setenv("LD_LIBRARY_PATH", "")
	err := CUDALoadable(lib)
	missing, ok := errors.AsType[*MissingLibrariesError](err)
	if !ok || !slices.Contains(missing.Missing, blas) || slices.Contains(missing.Missing, providersShared) {
		t.Fatalf("got %v, want missing %s", err, blas)
	}
	if !strings.Contains(err.Error(), blas) || !strings.Contains(err.Error(), "LD_LIBRARY_PATH") {
		t.Errorf("error does not contain the missing library and the remedy: %v", err)
	}
	t.Setenv("LD_LIBRARY_PATH", "/nowhere:"+deps)
	if err := CUDALoadable(lib); err != nil {
		t.Errorf("with all dependencies: %v", err)
	}
	must(t, os.Remove(filepath.Join(ort, providersShared)))
	missing, ok = errors.AsType[*MissingLibrariesError](CUDALoadable(lib))
	if !ok || !slices.Equal(missing.Missing, []string{providersShared}) {
		t.Errorf("got %v, want missing %s", missing, providersShared)
	}
}

func TestCUDALoadableWithoutProvider(t *testing.T) {
	t.Parallel()
	lib := Library{Path: filepath.Join(t.TempDir(), "libonnxruntime.so")}
	if err := CUDALoadable(lib); !errors.Is(err, ErrUnsupported) {
		t.Errorf("got %v, want %v", err, ErrUnsupported)
	}
}

// TestLoaderFinds: the loader's cache of a Linux with glibc contains the C library.
func TestLoaderFinds(t *testing.T) {
	if toolOutput("ldconfig", "-p") == "" {
		t.Skip("no ldconfig on this machine")
	}
	if !loaderFinds("libc.so.6", "") || loaderFinds(blas, "") {
		t.Errorf("the C library %t, the test's library %t", loaderFinds("libc.so.6", ""), loaderFinds(blas, ""))
	}
}
