package onnxruntime

import (
	"slices"
	"testing"
)

// The processor decides whether OpenVINO is used, and in which precisions.
func TestProcessor(t *testing.T) {
	t.Parallel()
	for p, want := range map[processor][]Precision{
		{avx2: true}:                 {FP32},
		{avx2: true, bfloat16: true}: {FP32, BF16},
	} {
		if got := p.precisions(); !slices.Equal(got, want) || p.usable() != nil {
			t.Errorf("%+v: precisions %v, error %v", p, got, p.usable())
		}
	}
	if err := (processor{}).usable(); err == nil {
		t.Error("a CPU without AVX2 is used")
	}
}
