package onnx_test

import (
	"errors"
	"testing"

	"ddiff/restore/onnx"
	"ddiff/restore/onnx/onnxtest"
)

func TestOneRuntimePerProcess(t *testing.T) {
	rt := onnxtest.Runtime(t)
	if rt.Provider() != onnx.ProviderCPU || rt.Version() == "" {
		t.Errorf("provider %q, version %q", rt.Provider(), rt.Version())
	}
	if _, err := onnx.Open(onnx.Config{Library: "whatever"}); !errors.Is(err, onnx.ErrAlreadyOpen) {
		t.Errorf("error %v, want ErrAlreadyOpen", err)
	}
}

func TestBadModelIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := onnxtest.Runtime(t).NewSession([]byte("no model"), []string{"x"}, []string{"y"}); !errors.Is(err, onnx.ErrRuntime) {
		t.Errorf("error %v, want ErrRuntime", err)
	}
}
