package onnxruntime_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"ddiff/internal/restore/onnx/onnxruntime"
	"ddiff/internal/restore/onnx/onnxtest"
)

// Each precision is parsed from its name; the error for another word lists the names.
func TestParsePrecision(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]onnxruntime.Precision{
		"float32": onnxruntime.FP32, "bfloat16": onnxruntime.BF16, "float16": onnxruntime.FP16,
	} {
		if got, err := onnxruntime.ParsePrecision(text); err != nil || got != want {
			t.Errorf("%q is parsed as %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"", "auto", "FP32", "fp32", "fp8", "float"} {
		_, err := onnxruntime.ParsePrecision(text)
		if !errors.Is(err, onnxruntime.ErrPrecision) || !strings.Contains(err.Error(), "float32, bfloat16, float16") {
			t.Errorf("%q: error %v does not list the precisions", text, err)
		}
	}
}

// A device computes in float32 first, and suggests one of its precisions.
func TestRuntimePrecisions(t *testing.T) {
	rt := onnxtest.Runtime(t)
	if !rt.Whole(onnxruntime.FP32) || !rt.Whole(onnxruntime.FP16) || rt.Whole(onnxruntime.BF16) {
		t.Error("a CPU computes a network in one session with the rest of a step in its precisions, and in no other")
	}
	if got, want := rt.Precisions(), []onnxruntime.Precision{onnxruntime.FP32, onnxruntime.FP16}; !slices.Equal(got, want) {
		t.Errorf("the CPU computes in %v, want %v", got, want)
	}
	if rt.Computes(onnxruntime.BF16) || !rt.Computes(onnxruntime.FP32) || !rt.Computes(rt.AutoPrecision()) {
		t.Errorf("bfloat16 %v, float32 %v, suggestion %s", rt.Computes(onnxruntime.BF16), rt.Computes(onnxruntime.FP32), rt.AutoPrecision())
	}
}
