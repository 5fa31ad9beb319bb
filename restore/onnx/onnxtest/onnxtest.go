// Package onnxtest opens ONNX Runtime for tests.
package onnxtest

import (
	"sync"
	"testing"

	"ddiff/restore/onnx"
	"ddiff/restore/onnx/install"
)

var open = sync.OnceValues(func() (*onnx.Runtime, error) {
	lib, err := install.Locate(install.LocateOptions{})
	if err != nil {
		return nil, err
	}
	return onnx.Open(onnx.Config{Library: lib.Path, Provider: onnx.ProviderCPU})
})

// Runtime is the process's runtime on the CPU, opened once and left to the end of the test
// binary. A test that cannot have it fails: the test command of the project installs it.
func Runtime(tb testing.TB) *onnx.Runtime {
	tb.Helper()
	rt, err := open()
	if err != nil {
		tb.Fatalf("open ONNX Runtime: %v", err)
	}
	return rt
}
