package onnxtest

import (
	"sync"
	"testing"

	"ddiff/internal/restore/onnx/install"
	"ddiff/internal/restore/onnx/onnxruntime"
)

var openVINO = sync.OnceValues(func() (*onnxruntime.Runtime, error) {
	lib, err := install.LocateOpenVINO("")
	if err != nil {
		return nil, err
	}
	rt, err := open()
	if err != nil {
		return nil, err
	}
	return rt.With(onnxruntime.Config{Provider: onnxruntime.ProviderOpenVINO, OpenVINO: lib.Path})
})

// OpenVINO returns the process's runtime on OpenVINO. The test is skipped without the library, see OpenVINOLibrary.
func OpenVINO(tb testing.TB) *onnxruntime.Runtime {
	tb.Helper()
	OpenVINOLibrary(tb)
	rt, err := openVINO()
	if err != nil {
		tb.Fatalf("open OpenVINO: %v", err)
	}
	return rt
}

// OpenVINOLibrary returns the path of OpenVINO's library. The test is skipped if it is not installed, and in short mode.
func OpenVINOLibrary(tb testing.TB) string {
	tb.Helper()
	if testing.Short() {
		tb.Skip("compiles with OpenVINO: make test-all")
	}
	lib, err := install.LocateOpenVINO("")
	if err != nil {
		tb.Skipf("no OpenVINO: %v", err)
	}
	return lib.Path
}
