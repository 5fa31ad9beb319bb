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

// The dynamic loader finds dependencies in LD_LIBRARY_PATH or by the run path; missing ones are named, also indirect ones and
// those of another architecture.
func TestCUDALoadable(t *testing.T) {
	byRunPath := []string{"-Wl,-rpath,$ORIGIN/../deps"}
	for name, test := range map[string]struct {
		flags   []string
		path    bool     // LD_LIBRARY_PATH has the directory of the dependencies
		removed []string // from it
		foreign string   // a library made to be of another architecture
		want    []string
	}{
		"nowhere":                      {want: []string{blas, cuDNN}},
		"LD_LIBRARY_PATH":              {path: true},
		"run path":                     {flags: byRunPath, want: []string{cuDNN}},
		"indirect missing on run path": {flags: byRunPath, removed: []string{blasLt}, want: []string{blasLt, cuDNN}},
		"indirect missing":             {path: true, removed: []string{blasLt}, want: []string{blasLt}},
		"cuDNN missing":                {path: true, removed: []string{cuDNN}, want: []string{cuDNN}},
		"wrong architecture":           {path: true, foreign: blas, want: []string{blas}},
		"not beside the provider":      {path: true, removed: []string{"../ort/" + providersShared}, want: []string{providersShared}},
	} {
		t.Run(name, func(t *testing.T) {
			root := filepath.Join(t.TempDir(), "x")
			deps := filepath.Join(root, "deps")
			lib := cudaBuild(t, filepath.Join(root, "ort"), deps, test.flags...)
			for _, name := range test.removed {
				must(t, os.Remove(filepath.Join(deps, name)))
			}
			if test.foreign != "" {
				content := read(t, filepath.Join(deps, test.foreign))
				content[18], content[19] = 0xf3, 0 // e_machine: RISC-V
				write(t, filepath.Join(deps, test.foreign), content)
			}
			t.Setenv("LD_LIBRARY_PATH", map[bool]string{true: "/nowhere:" + deps}[test.path])
			err := CUDALoadable(lib)
			if len(test.want) == 0 {
				must(t, err)
				return
			}
			slices.Sort(test.want)
			missing, ok := errors.AsType[*MissingLibrariesError](err)
			if !ok || !slices.Equal(missing.Missing, test.want) {
				t.Fatalf("error %v, want missing %q", err, test.want)
			}
			if !strings.Contains(err.Error(), test.want[0]) || !strings.Contains(err.Error(), "LD_LIBRARY_PATH") {
				t.Errorf("error does not contain the missing library and the remedy: %v", err)
			}
		})
	}
}

func TestCUDALoadableWithoutProvider(t *testing.T) {
	t.Parallel()
	lib := Library{Path: filepath.Join(t.TempDir(), "libonnxruntime.so")}
	if err := CUDALoadable(lib); !errors.Is(err, ErrUnsupported) {
		t.Errorf("got %v, want %v", err, ErrUnsupported)
	}
}

// The loader's cache of a Linux with glibc contains the C library.
func TestFindable(t *testing.T) {
	t.Parallel()
	if _, err := loaderProgram("/sbin/ldconfig", "-p"); err != nil {
		t.Skip("no ldconfig on this machine")
	}
	if !findable("libc.so.6", t.TempDir()) || findable(blas, t.TempDir()) {
		t.Error("the loader's cache was not read")
	}
}
