package onnxruntime

import (
	"errors"
	"strings"
	"testing"
)

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
