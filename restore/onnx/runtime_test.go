package onnx

import (
	"errors"
	"os/signal"
	"strings"
	"syscall"
	"testing"
)

func TestPreserveSignals(t *testing.T) {
	defer signal.Reset(syscall.SIGUSR2)
	changed, err := preserveSignals(func() error { signal.Ignore(syscall.SIGUSR2); return nil })
	if err != nil || changed != 1 {
		t.Errorf("%d handlers restored, error %v; want 1", changed, err)
	}
	changed, err = preserveSignals(func() error { return nil })
	if err != nil || changed != 0 {
		t.Errorf("%d handlers restored, error %v; want 0", changed, err)
	}
}

func TestConfigValidate(t *testing.T) {
	t.Parallel()
	for field, c := range map[string]Config{
		"Library":  {},
		"Device":   {Library: "x", Device: -1},
		"Threads":  {Library: "x", Threads: -1},
		"Provider": {Library: "x", Provider: "tpu"},
	} {
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), field) {
			t.Errorf("%s: error %v does not name the field", field, err)
		}
	}
}

func TestOpenMissingLibrary(t *testing.T) {
	_, err := Open(Config{Library: "/nonexistent/libonnxruntime.so"})
	if !errors.Is(err, ErrRuntime) {
		t.Errorf("error %v, want ErrRuntime", err)
	}
}
